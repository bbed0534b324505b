"""Assembles `report.html`: tables and captions come from here, the page itself from `report_page.html`.

`write_results` writes everything that is made from finished runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from emulator.errors import InputError
from emulator.storage.bounded import read_text
from emulator.storage.checkpoints import write_durably
from experiments.results.drawing.plotly_js import PLOTLY_FILE
from experiments.results.figures.figures import Arm
from experiments.results.figures.plots import membership_plots, pays_plots, round_plots
from experiments.results.frames.rounds_table import write_rounds_table
from experiments.results.pages.headline import drift_sentence, sentences
from experiments.results.pages.scripted_page import page_with_nonce
from experiments.results.pages.what_was_run import hashes_of_inputs, lead, missing_runs, settings_of_run
from experiments.results.pages.why_section import why
from experiments.results.reading.recorded import MOST_EXPERIMENT_BYTES
from experiments.results.reading.run_directory import FinishedRun, RunDirectory
from experiments.results.tables.columns import (
    ACCURACY,
    CLUSTER_CHANGES,
    COSTS,
    FAULTS,
    HONEST,
    TARGET,
    target_name,
    text_table,
)
from experiments.results.tables.drift_section import drift_section
from experiments.results.tables.faults import faults_section
from experiments.results.tables.for_whom_section import HOW_TO_LOG_CLIENTS, for_whom
from experiments.results.tables.formats import points_scale
from experiments.results.tables.notes import (
    HOW_TO_SET_A_TARGET,
    accuracy_note,
    as_warning,
    cluster_change_note,
    come_and_go_note,
    few_seeds_note,
    heard_note,
    honest_note,
    horizon_note,
    target_note,
)
from experiments.results.tables.seeds import per_seed_table
from experiments.results.tables.summary import Summary, summarise_directory, write_summary

QUESTIONS = (
    ("pays", "Does it pay?"),
    ("for-whom", "For whom?"),
    ("why", "Why?"),
    ("repeat", "Can I trust and repeat it?"),
)
"""The ids and titles of the questions that the page answers, in its order."""


def write_results(directory: RunDirectory, *, shared_plotly: bool = False) -> Summary:
    """Write `summary.json`, `rounds.parquet` and, once the reference arm has a finished run, `report.html`.

    Returns the summary. Raises InputError if no run is finished, and ForeignFileError, before anything is
    written, if a file or folder of the run directory is of another kind, such as a link. `shared_plotly`: see
    `write_report`.
    """
    directory.refuse_foreign()
    runs = directory.finished_runs()
    summary = write_summary(directory, runs)
    write_rounds_table(directory.rounds_path, runs)
    if summary.accuracy:
        write_report(directory, runs, summary, shared_plotly=shared_plotly)
    return summary


def write_report(
    directory: RunDirectory,
    runs: Sequence[FinishedRun] | None = None,
    summary: Summary | None = None,
    *,
    shared_plotly: bool = False,
) -> Path:
    """Write `report.html` and return its path. The same files give the same bytes.

    Args:
        directory: The run directory.
        runs: Its finished runs; by default they are read here.
        summary: Their summary; by default it is made here.
        shared_plotly: Whether the page loads plotly.js from the folder above, where `write_plotly` writes it.
            By default the page contains it, and stands alone.

    Raises:
        InputError: The reference arm has no finished run.
    """
    runs = directory.finished_runs() if runs is None else runs
    summary = summarise_directory(directory, runs) if summary is None else summary
    if not summary.accuracy:
        raise InputError(f"{directory.path}: the reference arm {summary.reference_arm!r} has no finished run")
    experiment, order = directory.experiment(), directory.arms()
    arms = [Arm(arm.arm, arm.runs, arm.curves, order.index(arm.arm)) for arm in summary.compared]
    colours = {arm.name: arm.colour for arm in arms}
    scored = experiment.get("round", {}).get("evaluate_clients")
    clients = for_whom(directory, arms, summary)
    reasons = why(directory, arms, summary)
    plots = {
        "pays": pays_plots(arms, summary, scored),
        "for-whom": [*([] if clients is None else clients.plots), *membership_plots(arms)],
        "why": [*reasons.plots, *round_plots(arms, scored)],
    }
    page = page_with_nonce(
        "report_page.html",
        name=summary.name,
        reference_arm=summary.reference_arm,
        lead=lead(experiment),
        drift_sentence=drift_sentence(summary.finished, summary.reference_arm, experiment["report"]),
        sentences=sentences(summary),
        horizon_note=horizon_note(summary),
        warnings=[as_warning(text) for text in summary.warnings()],
        heard_note=heard_note(summary),
        come_and_go_note=come_and_go_note(summary),
        facts=settings_of_run(directory),
        experiment_text=read_text(directory.experiment_path, MOST_EXPERIMENT_BYTES),
        colours=colours,
        accuracy=text_table(ACCURACY, summary.accuracy),
        accuracy_note=accuracy_note(summary),
        joint_note=_joint_note(summary),
        targets=[
            (target_name(table, summary.reference_arm), text_table(TARGET, table.rows))
            for table in summary.targets
        ],
        target_note=target_note(summary) if summary.targets else HOW_TO_SET_A_TARGET,
        few_seeds_note=few_seeds_note(summary),
        costs=text_table(COSTS, summary.costs),
        cluster_changes=(
            text_table(CLUSTER_CHANGES, summary.cluster_changes) if summary.shows_cluster_changes else None
        ),
        cluster_change_note=cluster_change_note(summary),
        faults=faults_section(experiment.get("faults", {}), arms[0].runs, summary.costs),
        fault_counts=text_table(FAULTS, summary.costs),
        honest=text_table(HONEST, summary.honest) if summary.shows_honest_clients else None,
        honest_note=honest_note(summary),
        missing=missing_runs(directory, {(run.arm, run.seed) for arm in arms for run in arm.runs}),
        drift=drift_section(order, summary.finished, runs, experiment["report"]),
        questions=QUESTIONS,
        seed_table=_seed_table(summary),
        hashes=hashes_of_inputs(directory),
        plots=plots,
        num_plots=sum(map(len, plots.values())),
        for_whom=clients,
        how_to_log_clients=HOW_TO_LOG_CLIENTS,
        why=reasons,
        plotly_js=None if shared_plotly else Markup(get_plotlyjs()),
        plotly_file=PLOTLY_FILE,
    )
    write_durably(directory.report_path, page)
    return directory.report_path


def _joint_note(summary: Summary) -> str:
    """A note with the intervals of gains that hold for all arms at once; empty for a single comparison."""
    scale = points_scale(0.0)
    shown = [
        f"{row.arm} [{scale.bare(row.gain_pp.ci95_joint[0])}, {scale.bare(row.gain_pp.ci95_joint[1])}]"
        for row in summary.accuracy
        if row.gain_pp is not None and row.gain_pp.ci95_joint is not None
    ]
    if len(shown) < 2:
        return ""
    return f"Intervals of gains that hold for all arms at once (Bonferroni, 95 %): {', '.join(shown)}."


def _seed_table(summary: Summary) -> dict[str, Any]:
    """The values of the table per seed and of its CSV."""
    table = per_seed_table(summary)
    return {
        "columns": table.columns,
        "rows": table.shown(),
        "is_open": table.is_open,
        "url": Markup(table.data_url()),  # percent-encoded
        "file": f"{summary.name}-seeds.csv",
        "targets": ", ".join(
            f"target {number} is {target_name(target, summary.reference_arm)}"
            for number, target in enumerate(summary.targets, 1)
        ),
    }
