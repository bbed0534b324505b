"""Accuracy without and with drift cells, of all finished runs, where the trace knows its concepts.

The figures are `finished` of `summary.json`, which also counts seeds that the reference arm has not finished:

    steps           number of data steps in the trace; null if no log records concepts
    scored_steps    number of data steps with an evaluation, of the run that has the fewest; null if no run
                    records drift cells
    arms.<arm>      seed_ids, and <figure> {mean, ci95, per_seed} as in the summary

The figures of an arm are the accuracies with and without drift cells, `models_sent`, and
`relative_models_sent`, the ratio to the reference arm. That ratio is over the seeds that both arms have
finished; without such a seed its mean is null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from experiments.results.reading.json_files import ArmFigures, Finished
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.drift.accuracy import drift_accuracies, has_drift_cells, last_evaluations
from experiments.results.statistics.intervals import amount_estimate, mean_estimate, ratio_estimate
from experiments.results.statistics.marked_seeds import marked_by_drift
from experiments.results.statistics.published import COMPARED, agreement, beside_published, spread
from experiments.results.tables.cells import Cell
from experiments.results.tables.published_cells import (
    OUTSIDE,
    agreement_sentence,
    compared,
    models,
    scored_steps,
    unmarked,
)
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

HEADINGS = ("omitting drift", "including drift")
"""Those of the figures `COMPARED`."""

NOTE = (
    "Mean ± sample standard deviation (n \N{MINUS SIGN} 1) over seeds. Test-then-train: at the end of each "
    "data step every client is scored on its samples of the next step; a cell is one client at one step. If "
    "those samples are of another concept than the samples that the client trained on, no method can be "
    "prepared: the first figure leaves such drift cells out, the second includes them. Models sent are whole "
    "models, down and up, for training and for scoring; in brackets relative to "
)


def figures_of_finished(
    runs: Sequence[ReportedRun], reference_arm: str, with_triggers: Collection[str] = ()
) -> Finished:
    """The figures of `runs`, each of at least one round; arms are in the order of their first runs.

    Those of the arms `with_triggers`, and those beside one, are by seed.
    """
    arms: dict[str, dict[int, ReportedRun]] = {}
    for run in runs:
        arms.setdefault(run.arm, {})[run.seed] = run
    known = [len(run.header["concepts"]) - 1 for run in runs if "concepts" in run.header]
    scored = [len(last_evaluations(run.records)) for run in runs if has_drift_cells(run.records)]
    reference = arms.get(reference_arm, {})
    return Finished(
        steps=max(known, default=None),
        scored_steps=min(scored, default=None),
        arms={
            arm: _arm_figures(
                by_seed,
                reference,
                has_trigger=arm in with_triggers,
                is_beside_one=reference_arm in with_triggers,
            )
            for arm, by_seed in arms.items()
        },
    )


def _arm_figures(
    by_seed: Mapping[int, ReportedRun],
    reference: Mapping[int, ReportedRun],
    *,
    has_trigger: bool,
    is_beside_one: bool,
) -> ArmFigures:
    runs = list(by_seed.values())
    paired = [seed for seed in by_seed if seed in reference]
    accuracies = [drift_accuracies(run.records) for run in runs]
    figures = {
        **{name: mean_estimate([of[name] for of in accuracies]) for name in accuracies[0]},
        "models_sent": amount_estimate([_models_sent(run) for run in runs]),
        "relative_models_sent": ratio_estimate(
            [_models_sent(by_seed[seed]) for seed in paired],
            [_models_sent(reference[seed]) for seed in paired],
        ),
    }
    without_interval = list(figures) if has_trigger else ["relative_models_sent"] if is_beside_one else []
    written = {
        figure: (estimate.by_seed() if figure in without_interval else estimate).as_json()
        for figure, estimate in figures.items()
    }
    return ArmFigures.model_validate({"seed_ids": list(by_seed), **written})


def _models_sent(run: ReportedRun) -> float:
    return run.records[-1].models_sent


def is_known(finished: Finished) -> bool:
    """Whether some arm has an accuracy with or without drift cells."""
    return any(arm[figure].mean is not None for arm in finished.arms.values() for figure in COMPARED)


Cells = dict[str, dict[str, Mapping[str, Any] | None]]
"""For each of the figures `COMPARED` and each arm, what `beside_published` has."""


def _on_page(report: Report) -> OnPage | None:
    finished = report.summary.finished
    if not is_known(finished):
        return None
    names = [name for name in report.order if name in finished.arms]
    settings = report.experiment["report"]
    cells = _cells(finished, names, settings)
    agreed = [_agreement(cells[figure], heading) for figure, heading in zip(COMPARED, HEADINGS, strict=True)]
    known = [sentence for sentence in agreed if sentence is not None]
    notes = [_note(report, has_published=bool(known)), *filter(None, known)]
    return OnPage([NotedTable("", accuracy_table(finished, names, settings), notes)])


def _agreement(cells: Mapping[str, Mapping[str, Any] | None], heading: str) -> str | None:
    """A sentence on how a figure agrees with published values, perhaps empty; None without any."""
    found = agreement({name: cell for name, cell in cells.items() if cell is not None})
    return None if found is None else agreement_sentence(heading.capitalize(), found)


def _cells(finished: Finished, names: Sequence[str], settings: Mapping[str, Any]) -> Cells:
    arms = finished.arms
    marked = {entry.seed for entry in marked_by_drift(finished)}
    return {
        figure: {
            name: beside_published(
                arms[name][figure].per_seed, figure, name, settings, marked, arms[name].seed_ids
            )
            for name in names
        }
        for figure in COMPARED
    }


def accuracy_table(finished: Finished, names: Sequence[str], settings: Mapping[str, Any]) -> TextTable:
    """A row for each of the arms `names`: each accuracy, its published value and the difference, and models.

    `settings` is the table `[report]` of the configuration.
    """
    cells = _cells(finished, names, settings)
    headings = [text for heading in HEADINGS for text in (f"{heading} (%)", "published", "difference")]
    rows = []
    for name in names:
        arm = finished.arms[name]
        row = []
        for figure in COMPARED:
            ours, published, difference = compared(cells[figure][name])
            row += [Cell(ours, unmarked(cells[figure][name])), Cell(published), Cell(difference)]
        sent = models(spread(arm.models_sent.per_seed), spread(arm.relative_models_sent.per_seed))
        rows.append((name, [*row, Cell(sent)]))
    return TextTable([*headings, "models sent"], rows)


def _note(report: Report, *, has_published: bool) -> str:
    finished = report.summary.finished
    steps = scored_steps(finished.steps, finished.scored_steps)
    scored = Markup("<strong>{} were scored.</strong> ").format(steps) if steps else Markup("")
    outside = f" Of a difference, {OUTSIDE}." if has_published else ""
    return scored + f"{NOTE}{report.summary.reference_arm}.{outside}"


TABLE = Table(
    title="Accuracy without drift cells and with them", place=Place("pays", id="drift"), on_page=_on_page
)
