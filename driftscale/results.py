"""`load`: the results of run directories as frames, as a table, and as the figures of the report."""

from __future__ import annotations

import io
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup, escape

from driftscale.figures import Figures, on_white
from emulator.errors import EmulatorError, InputError, abbreviated
from experiments.cli.output import text_console
from experiments.cli.tables import print_short, print_short_sections
from experiments.results.drawing.plot import Plot
from experiments.results.figures import all_figures
from experiments.results.figures.clusters import clustered_run, membership_figure
from experiments.results.figures.model_accuracy import plot_id
from experiments.results.figures.timeline import timeline_figure
from experiments.results.frames.result_frames import RecordedExperiment, ResultFrames
from experiments.results.many_runs.directories import MeasuredDirectory, read_folder, run_directories
from experiments.results.many_runs.folder_table import build_table, recorded_name
from experiments.results.many_runs.runs_table import folder_warnings
from experiments.results.many_runs.section_plots import section_plots
from experiments.results.many_runs.sections import Section, sections
from experiments.results.pages.folder_page import folder_sentences
from experiments.results.pages.sentences import in_terminal, notation, sentences
from experiments.results.pages.short_table import short_folder_tables, short_table
from experiments.results.reading.not_recorded import KEEP_MODELS, LOG_VISITS, NotRecordedError
from experiments.results.statistics.absorbed import has_steps
from experiments.results.statistics.summary import Summary
from experiments.results.tables import all_tables
from experiments.results.tables.chosen_rounds import TimelineRound
from experiments.results.tables.notes import short_notes
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import OF_STEPS, read_columns
from experiments.results.tables.table import TextTable
from experiments.results.wording import told

if TYPE_CHECKING:
    import plotly.graph_objects as go

GROUPS = ("device", "network", "label", "cluster")
"""The groups of clients by which the report shows accuracies."""


def load(path: str | Path) -> Results:
    """The results of a run directory, or of a folder of run directories such as a sweep.

    Args:
        path: The run directory or the folder.

    Returns:
        The results of all finished runs. Logs are read when a frame or a figure is first asked for.

    Raises:
        InputError: There is no such directory, it is neither, or none of its runs is finished.
    """
    return Results(ResultFrames.read(Path(path)))


class Results:
    """The finished runs of a run directory, or of a folder of them.

    A notebook shows them as tables of the report, and a terminal as `driftscale report` prints them.

    The frames are `summary`, `table`, `rounds`, `clients`, `visits`, `triggers`, `detection`, `drifts` and
    `model_accuracy`, with units in the names of columns and accuracies as shares of 1. Those of a folder
    begin with a column `experiment` and one for each key in which its configurations differ. Every `plot_`
    method returns a figure of the report as a plotly figure; of a folder, `results["name"]` has them for one
    experiment.

    Args:
        frames: The frames; `load` makes them from a path.
    """

    def __init__(self, frames: ResultFrames) -> None:
        self._frames = frames

    @property
    def path(self) -> Path:
        """The run directory, or the folder."""
        return self._frames.path

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments with finished runs: one, or those of a folder."""
        return [item.name for item in self._frames.experiments]

    @property
    def unfinished(self) -> list[str]:
        """The planned runs that are left out because they are not finished."""
        return list(self._frames.unfinished)

    @property
    def config(self) -> dict[str, Any]:
        """The recorded configuration with all defaults; of a folder, those of its experiments by name."""
        if self._frames.is_folder:
            return {item.name: item.config for item in self._frames.experiments}
        return self._frames.experiments[0].config

    @property
    def summary(self) -> pd.DataFrame:
        """A row per arm, seed and figure, and per target of it; `value` is NaN if only bounds are known."""
        return self._frames.frame("summary")

    @property
    def table(self) -> pd.DataFrame:
        """A row per arm: the mean over seeds of each figure without a target, and its 95 % interval.

        It is not exported.
        """
        return self._frames.frame("table")

    @property
    def rounds(self) -> pd.DataFrame:
        """A row per arm, seed and round, also after the horizon, with the columns of rounds.parquet."""
        return self._frames.frame("rounds")

    @property
    def clients(self) -> pd.DataFrame:
        """A row per arm, seed and client, as of the last round by the horizon."""
        return self._frames.frame("clients")

    @property
    def visits(self) -> pd.DataFrame:
        """A row per visit.

        Raises:
            NotRecordedError: The runs did not log their visits (round.log_visits = true).
        """
        return self._frames.frame("visits")

    @property
    def triggers(self) -> pd.DataFrame:
        """A row per arm, seed and round in which a trigger compared, or numbers of clusters were tried."""
        return self._frames.frame("triggers")

    @property
    def detection(self) -> pd.DataFrame:
        """A row per arm, seed and detector, over the rounds that are scored.

        The figures are those of `detection` in summary.json.

        Raises:
            NotRecordedError: The runs did not record decisions of detectors (a table [detection]).
        """
        return self._frames.frame("detection")

    @property
    def drifts(self) -> pd.DataFrame:
        """A row per arm, seed, detector and drift, of the rounds that are scored.

        A drift is a client and the round in which its data become others.

        Raises:
            NotRecordedError: The runs did not record decisions of detectors (a table [detection]).
        """
        return self._frames.frame("drifts")

    @property
    def model_accuracy(self) -> pd.DataFrame:
        """A row per arm, seed, evaluated round, model and true concept of tests, also after the horizon.

        Arms that federate no models have none.

        Raises:
            NotRecordedError: The runs did not log it (round.log_model_accuracy = true).
        """
        return self._frames.frame("model_accuracy")

    def columns(self, frame: str) -> pd.DataFrame:
        """A row per column of a frame: its name, its unit, its meaning, and when it is missing.

        Args:
            frame: The name of the frame, such as "rounds".

        Raises:
            InputError: There is no such frame.
            NotRecordedError: The runs did not record what is in it.
        """
        return self._frames.columns(frame)

    def clients_of(self, arm: str, seed: int) -> pd.DataFrame:
        """The rows of `clients` of one run: with a million clients, all runs may not fit in memory.

        Raises:
            InputError: No such run is finished, or this is a folder.
        """
        return self._one.clients(arm, seed)

    def visits_of(self, arm: str, seed: int) -> pd.DataFrame:
        """The rows of `visits` of one run.

        Raises:
            NotRecordedError: The run did not log its visits (round.log_visits = true).
            InputError: No such run is finished, or this is a folder.
        """
        return self._one.visits(arm, seed)

    def model(
        self,
        arm: str,
        seed: int,
        cluster: int | None = None,
        client: int | None = None,
        *,
        round: int | None = None,  # noqa: A002
    ) -> dict[str, Any]:
        """The state dict of a model of a finished run: tensors of torch, which `load_state_dict` takes.

        It is the model of the last round.

        Args:
            arm: The arm.
            seed: The seed.
            cluster: The cluster whose model it is; may be left out if there is one model.
            client: Instead, the client whose model it is: that which serves it, with what it has of its own.
            round: Refused: only the last model is kept. The best one would be chosen on test samples.

        Raises:
            NotRecordedError: The run kept no models (output.models = true).
            InputError: No such run is finished, there is no such cluster or client, or this is a folder.
        """
        if round is not None:
            raise InputError(
                f"round = {round}: a run keeps the models of its last round alone; leave it out (the best "
                f"round would be chosen on the clients' test samples)"
            )
        self._one.refuse_unknown(arm, seed)
        directory, where = self._one.directory, f"{self.path}: arm {arm!r}, seed {seed}"
        if (until := directory.until(arm, seed)) is not None:
            raise InputError(
                f"{where} was stopped by --until {until.rounds}, and has no models before its end"
            )
        path = directory.run_file(arm, seed, "models.safetensors")
        if not path.exists():
            raise NotRecordedError(
                where, "models, or they were too large for output.models = 'auto'", KEEP_MODELS
            )
        from executor.models.files import open_models  # imports torch

        with open_models(path) as models:
            return models.chosen(cluster, client)

    def __getitem__(self, experiment: str) -> Results:
        """The results of one experiment of a folder, by its name.

        Raises:
            InputError: There is no such experiment with finished runs.
        """
        for item in self._frames.experiments:
            if item.name == experiment:
                return load(item.directory.path)
        arms = {arm["name"] for item in self._frames.experiments for arm in item.config["arm"]}
        hint = f"; it is an arm: results.rounds[results.rounds.arm == {experiment!r}] has its rows"
        raise InputError(
            f"{self.path}: no experiment {experiment!r} with finished runs; choices: "
            f"{', '.join(self.experiments)}{hint if experiment in arms else ''}"
        )

    # -- figures of the report ---------------------------------------------------------------------------

    def plot_accuracy(self) -> go.Figure:
        """Smoothed accuracy (%) of each arm against virtual time, with every seed as a thin line."""
        return self._drawn("accuracy")

    def plot_personal(self) -> go.Figure:
        """Personal accuracy (%) of the arms that have one against virtual time, beside their accuracy."""
        return self._drawn("personal")

    def plot_difference(self) -> go.Figure:
        """Accuracy minus that of the reference arm at the same virtual time, in percentage points."""
        return self._drawn("difference")

    def plot_below(self) -> go.Figure:
        """How long the accuracy was below a target, for every target: medians over seeds."""
        return self._drawn("below")

    def plot_speedups(self) -> go.Figure:
        """How many times sooner than the reference arm a target is held, for every target."""
        return self._drawn("speedups")

    def plot_client_distance(self) -> go.Figure:
        """Mean distance between clients that share a model, over rounds, and that of all clients."""
        return self._drawn("client_distance")

    def plot_drift(self) -> go.Figure:
        """The true concept of each client, or else who began to receive other data, over data steps.

        Of the first seed of the reference arm; the other arms have the same data.
        """
        return self._drawn("drift")

    def plot_clusters(self, arm: str | None = None, seed: int | None = None) -> go.Figure:
        """The cluster of each client over the rounds of one run.

        Args:
            arm: The arm; by default the first that ever has several clusters.
            seed: The seed; by default the first of the arm that has several clusters.
        """
        arms = [known for known in self._report.arms if arm in (None, known.name)]
        if not arms:
            raise self._cannot(
                f"no arm {arm!r}; choices: {', '.join(known.name for known in self._report.arms)}"
            )
        if seed is not None:
            return on_white(membership_figure(self._one.run(arms[0].name, seed)))
        found = (clustered_run(known) for known in arms)
        run = next((run for run in found if run is not None), None)
        if run is None:
            raise self._cannot(f"{'no arm' if arm is None else f'arm {arm!r}'} ever has several clusters")
        return on_white(membership_figure(run))

    def plot_durations(self) -> go.Figure:
        """Durations of rounds in virtual time, over all rounds and seeds of an arm."""
        return self._drawn("durations")

    def plot_outcomes(self) -> go.Figure:
        """Participants per round that completed, were abandoned, or dropped out."""
        return self._drawn("outcomes")

    def plot_client_accuracy(self) -> go.Figure:
        """Deciles of the accuracy of clients at the horizon, for each arm.

        Raises:
            NotRecordedError: The runs did not log it (round.log_client_accuracy = true).
        """
        return self._drawn("client_accuracy")

    def plot_client_gain(self) -> go.Figure:
        """How much better or worse off clients are than under the reference arm, paired by client and seed.

        Raises:
            NotRecordedError: The runs did not log it (round.log_client_accuracy = true).
        """
        return self._drawn("client_gain")

    def plot_clients_by(self, group: str) -> go.Figure:
        """Accuracy of clients at the horizon by group.

        Args:
            group: "device" or "network" (quarters of the fleet by speed), "label" (of which a client holds
                most), or "cluster".

        Raises:
            NotRecordedError: The runs did not log accuracies (round.log_client_accuracy = true).
            InputError: There is no such group, or the runs do not say which client is in which.
        """
        if group not in GROUPS:
            raise InputError(f"plot_clients_by: {group!r} must be one of {', '.join(GROUPS)}")
        plots = {plot.id: plot for plot in self._plots("clients_by")}
        if (plot := plots.get(f"clients-by-{group}")) is None:
            raise self._cannot(
                f"no figure clients-by-{group}: the runs do not say which client is in which group"
            )
        return on_white(plot.figure)

    def plot_model_accuracy(self, arm: str | None = None) -> go.Figure:
        """The accuracy of each model on the tests of each true concept, last evaluated by the horizon.

        Args:
            arm: The arm, of which the first seed is drawn; by default the first that has such accuracies.

        Raises:
            NotRecordedError: The runs did not log it (round.log_model_accuracy = true).
            InputError: There is no such arm, or it federates no models.
        """
        if arm is None:
            return self._drawn("model_accuracy")
        plots = {plot.id: plot for plot in self._plots("model_accuracy")}
        ids = {known.name: plot_id(known) for known in self._report.arms}
        if ids.get(arm) not in plots:
            choices = ", ".join(name for name, id_ in ids.items() if id_ in plots)
            raise self._cannot(f"no models of arm {arm!r} were measured; choices: {choices}")
        return on_white(plots[ids[arm]].figure)

    def plot_flags(self) -> go.Figure:
        """The share of decisions of each detector that are flags, over rounds, and when clients drift.

        Raises:
            NotRecordedError: The runs did not record decisions of detectors (a table [detection]).
        """
        return self._drawn("flags")

    def plot_trigger(self) -> go.Figure:
        """The distance that each arm's trigger measured, and its limit, over rounds."""
        return self._drawn("trigger")

    def plot_silhouettes(self) -> go.Figure:
        """The number of clusters over rounds, and the silhouette of each number tried."""
        return self._drawn("silhouettes")

    def plot_waiting(self) -> go.Figure:
        """The causes of the time of closed rounds, in virtual time; phases with round.log_visits."""
        return self._drawn("waiting")

    def plot_timeline(self, arm: str, seed: int, round: int) -> go.Figure:  # noqa: A002
        """The visits of one round as bars: requests, download, compute and upload.

        Args:
            arm: The arm.
            seed: The seed.
            round: The round, from 0.

        Raises:
            NotRecordedError: The run did not log its visits (round.log_visits = true).
            InputError: No such run is finished, it has no such round, or its rounds may have several server
                steps.
        """
        run = self._one.run(arm, seed)
        if not 0 <= round < len(run.records):
            raise self._cannot(f"no round {round}; {arm}, seed {seed} has rounds 0 to {len(run.records) - 1}")
        if has_steps(run.records):
            raise self._cannot(f"no timeline of arm {arm!r}: {OF_STEPS}")
        visits = read_columns(self._one.directory, arm, seed)
        if visits is None:
            raise NotRecordedError(str(self.path), "visits", LOG_VISITS)
        shown = TimelineRound(arm, seed, run.records[round], visits.of_round(round))
        return on_white(timeline_figure([shown]))

    def plot_sections(self) -> Figures:
        """The figures of a folder's table, which a notebook draws: of a sweep, gains against the swept keys.

        Raises:
            InputError: This is a single run directory, or nothing can be drawn.
        """
        if not self._frames.is_folder:
            raise InputError(f"{self.path}: a single run directory; plot_sections is of a folder of them")
        drawn = [section_plots(section, f"section-{index}") for index, section in enumerate(self._sections)]
        if absences := [plots.absence for plots in drawn if plots.absence is not None and not plots.plots]:
            raise InputError(f"{self.path}: {absences[0]}")
        return Figures(
            [plot for plots in drawn for plot in plots.plots],
            max((plots.least_px for plots in drawn), default=0),
        )

    if not TYPE_CHECKING:  # a type checker knows the methods above

        def __getattr__(self, name: str) -> Any:
            """`plot_<name>` of a figure of the report that has no method above, as one that was added."""
            figure = name.removeprefix("plot_")
            if figure != name and figure in all_figures():
                return partial(self._drawn, figure)
            return object.__getattribute__(self, name)  # raises the error of that attribute again

    # -- as text -----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """What `driftscale report` prints in a terminal: one table, and what was found.

        Where files are damaged or gone, the line that says so.
        """
        text = io.StringIO()
        try:
            if self._frames.is_folder:
                print_short_sections(self._table, self._sections, text_console(text))
            else:
                print_short(self._summary, self._one.directory.arms(), self._settings, text_console(text))
            tables = [text.getvalue().rstrip(), ""] if text.getvalue() else []
            return "\n".join([*tables, *in_terminal(self._sentences()), *self._notes()])
        except (EmulatorError, OSError) as error:
            return f"Results that cannot be shown: {error}"

    def _repr_html_(self) -> str | None:
        """The conclusions, and the tables of the report without their notes, for a notebook.

        None for an error: a notebook then shows the text, which has it.
        """
        with suppress(EmulatorError, OSError):
            return "".join(str(part) for part in self._parts())
        return None

    def _parts(self) -> list[Markup]:
        stated = self._sentences()
        parts = [_paragraph(line) for line in filter(None, [*stated, notation(stated)])]
        if self._frames.is_folder:
            parts += [_paragraph(note) for note in folder_warnings(self._sections)]
            for shown in short_folder_tables(self._table, self._sections):
                parts += [_html_table(shown.title, shown.table), *map(_paragraph, shown.notes)]
            return [*parts, *map(_paragraph, self._notes())]
        summary = self._summary
        parts += [_paragraph(note) for note in short_notes(summary)]
        if summary.finished.scored_steps is not None:
            of_drift = short_table(summary, self._one.directory.arms(), self._settings)
            parts += [] if of_drift is None else [_html_table(of_drift.title, of_drift.table)]
        if summary.rows:
            parts += [
                _html_table(caption[0].upper() + caption[1:], shown)
                for table in all_tables()
                if table.in_terminal is not None and table.in_terminal.in_notebook
                for caption, shown in table.with_captions(summary, as_printed=False)
            ]
        return [*parts, *map(_paragraph, self._notes())]

    def _sentences(self) -> list[str]:
        if self._frames.is_folder:
            return folder_sentences(self._table, self._sections)
        return sentences(self._summary, self._settings)

    def _notes(self) -> list[str]:
        """Lines on runs and columns that are left out, with the option that records the columns."""
        notes = [] if self._frames.missing_columns is None else [self._frames.missing_columns]
        if self.unfinished:
            notes.append(f"not finished and left out: {abbreviated(self.unfinished)}")
        return notes

    # -- what figures are made of ------------------------------------------------------------------------

    @property
    def _one(self) -> RecordedExperiment:
        """The only experiment; InputError that says how to choose one of several."""
        if self._frames.is_folder:
            raise InputError(
                f"{self.path}: a folder of run directories; choose one as results[{self.experiments[0]!r}], "
                f"of {', '.join(self.experiments)}, or draw all with plot_sections()"
            )
        return self._frames.experiments[0]

    @property
    def _summary(self) -> Summary:
        return self._one.summary

    @cached_property
    def _report(self) -> Report:
        """The report behind the figures; InputError if no arm is compared."""
        summary = self._summary
        if not summary.rows:
            raise self._cannot(f"the reference arm {summary.reference_arm!r} has no finished run")
        return Report(self._one.directory, self._one.runs, summary)

    @property
    def _settings(self) -> dict[str, Any]:
        """The table [report] of the only experiment."""
        settings: dict[str, Any] = self._one.config["report"]
        return settings

    @cached_property
    def _table(self) -> dict[str, Any]:
        """The table of the folder, as `table.json` has it but for its sections."""
        return build_table(
            recorded_name(self.path), {item.directory: item.finished for item in self._measured}
        )

    @cached_property
    def _sections(self) -> list[Section]:
        return sections(self._measured)

    @cached_property
    def _measured(self) -> list[MeasuredDirectory]:
        known = [item.directory for item in self._frames.experiments]
        return read_folder(list(dict.fromkeys([*known, *run_directories(self.path)])))

    def _plots(self, name: str) -> list[Plot]:
        """The plots of a figure of the report, by its name; InputError if its data were not recorded."""
        figure = all_figures()[name]
        figure.refuse(self._report)
        return figure.plots(self._report)

    def _drawn(self, name: str) -> go.Figure:
        """The figure of that name; InputError if it would show nothing."""
        plots = self._plots(name)
        if not plots:
            raise self._cannot(told(self._summary.words, all_figures()[name].absence))
        return on_white(plots[0].figure)

    def _cannot(self, why: str) -> InputError:
        return InputError(f"{self.path}: cannot be drawn: {why}")


def _paragraph(text: str) -> Markup:
    return Markup("<p>{}</p>").format(text)


def _html_table(title: str, shown: TextTable) -> Markup:
    """The table with its title; each figure is above its interval and its note."""
    headings = Markup("").join(Markup("<th>{}</th>").format(heading) for heading in ("arm", *shown.headings))
    rows = Markup("").join(
        Markup("<tr><th>{}</th>{}</tr>").format(
            arm,
            Markup("").join(
                Markup("<td>{}{}</td>").format(
                    cell.figure,
                    Markup("").join(map(Markup("<br><small>{}</small>").format, cell.lines[1:])),
                )
                for cell in cells
            ),
        )
        for arm, cells in shown.rows
    )
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        escape(title), headings, rows
    )
