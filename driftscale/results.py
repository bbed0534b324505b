"""`load`: the results of run directories as frames, as a table, and as the figures of the report."""

from __future__ import annotations

import contextlib
import io
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup, escape

from emulator.errors import InputError
from experiments.cli.tables import print_section, print_summary
from experiments.naming import abbreviated
from experiments.results.figures import figures
from experiments.results.figures.difference import can_be_compared, difference_figure
from experiments.results.figures.every_target import every_target
from experiments.results.figures.figures import Arm
from experiments.results.figures.timeline import TimelineRound, timeline_figure
from experiments.results.frames.result_frames import (
    NotRecordedError,
    RecordedExperiment,
    ResultFrames,
)
from experiments.results.many_runs.folder_table import build_sections
from experiments.results.many_runs.rows import Section
from experiments.results.many_runs.runs_table import runs_horizon, runs_table, runs_warnings
from experiments.results.many_runs.section_plots import section_plots
from experiments.results.pages.why_section import read_columns, why_plots
from experiments.results.tables.accuracy_tables import TargetTable
from experiments.results.tables.columns import ACCURACY, COSTS, TARGET, TextTable, target_name, text_table
from experiments.results.tables.for_whom_section import for_whom
from experiments.results.tables.notes import as_warning, horizon_note
from experiments.results.tables.summary import Summary

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from experiments.results.drawing.plain_figure import PlainFigure

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

    A notebook shows them as the table of the report, and a terminal as that of `driftscale report`.

    The frames are `summary`, `table`, `rounds`, `clients`, `visits` and `triggers`, with units in the names
    of columns and accuracies as shares of 1. Those of a folder begin with a column `experiment` and one for
    each key in which its configurations differ. Every `plot_` method returns a figure of the report as a
    plotly figure; of a folder, `results["name"]` has them for one experiment.

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
        """A row per arm, seed, figure and target: `value` is NaN for a time of which only bounds are known.

        Columns: arm, seed, figure (as in summary.json), target, value, low, high, status.
        """
        return self._frames.summary

    @property
    def table(self) -> pd.DataFrame:
        """A row per arm: the mean over seeds of each figure without a target, and its 95 % interval."""
        return self._frames.table

    @property
    def rounds(self) -> pd.DataFrame:
        """A row per arm, seed and round, with the columns of rounds.parquet."""
        return self._frames.rounds

    @property
    def clients(self) -> pd.DataFrame:
        """A row per arm, seed and client, by the horizon: cluster, participations, device.

        Also `accuracy`, and `label`, of which the client holds most samples, where the runs logged them
        (round.log_client_accuracy = true).
        """
        return self._frames.clients

    @property
    def visits(self) -> pd.DataFrame:
        """A row per visit, with the columns of visits.parquet.

        Raises:
            NotRecordedError: The runs did not log their visits (round.log_visits = true).
        """
        return self._frames.visits

    @property
    def triggers(self) -> pd.DataFrame:
        """A row per arm, seed and round in which a trigger compared: shift, limit, fired, silhouettes."""
        return self._frames.triggers

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

    def __getitem__(self, experiment: str) -> Results:
        """The results of one experiment of a folder, by its name.

        Raises:
            InputError: There is no such experiment with finished runs.
        """
        for item in self._frames.experiments:
            if item.name == experiment:
                return load(item.directory.path)
        raise InputError(
            f"{self.path}: no experiment {experiment!r} with finished runs; choices: "
            f"{', '.join(self.experiments)}"
        )

    # -- figures of the report ---------------------------------------------------------------------------

    def plot_accuracy(self) -> go.Figure:
        """Smoothed accuracy (%) of each arm against virtual time, with every seed as a thin line."""
        goals = [goal for table in self._summary.targets if (goal := table.accuracy.mean)]
        return figures.accuracy_figure(self._arms, self._summary.horizon, goals).validated()

    def plot_difference(self) -> go.Figure:
        """Accuracy minus that of the reference arm at the same virtual time, in percentage points."""
        arms, horizon = self._arms, self._summary.horizon
        if not can_be_compared(arms, horizon):
            raise self._cannot("no other arm has a stretch of virtual time in common with the reference arm")
        events = figures.event_spans([horizon.events_s(run) for arm in arms for run in arm.runs])
        return difference_figure(arms, horizon, events).validated()

    def plot_below(self) -> go.Figure:
        """How long the accuracy was below a target, for every target: medians over seeds."""
        return figures.below_figure(self._arms, self._every_target(), self._summary.horizon).validated()

    def plot_speedups(self) -> go.Figure:
        """How many times sooner than the reference arm a target is held, for every target."""
        return figures.speedup_figure(self._arms, self._every_target()).validated()

    def plot_client_distance(self) -> go.Figure:
        """Mean distance between clients that share a model, over rounds, and that of all clients."""
        return figures.heterogeneity_figure(self._arms).validated()

    def plot_clusters(self, arm: str | None = None, seed: int | None = None) -> go.Figure:
        """The cluster of each client over the rounds of one run.

        Args:
            arm: The arm; by default the first that ever has several clusters.
            seed: The seed; by default the first of the arm that has several clusters.
        """
        arms = [known for known in self._arms if arm in (None, known.name)]
        if not arms:
            raise self._cannot(f"no arm {arm!r}; choices: {', '.join(known.name for known in self._arms)}")
        if seed is not None:
            return figures.membership_figure(self._one.run(arms[0].name, seed)).validated()
        found = (figures.clustered_run(known) for known in arms)
        run = next((run for run in found if run is not None), None)
        if run is None:
            raise self._cannot(f"{'no arm' if arm is None else f'arm {arm!r}'} ever has several clusters")
        return figures.membership_figure(run).validated()

    def plot_durations(self) -> go.Figure:
        """Durations of rounds in virtual time, over all rounds and seeds of an arm."""
        return figures.durations_figure(self._arms).validated()

    def plot_outcomes(self) -> go.Figure:
        """Participants per round that completed, were abandoned, or dropped out."""
        return figures.outcomes_figure(self._arms).validated()

    def plot_client_accuracy(self) -> go.Figure:
        """Deciles of the accuracy of clients at the horizon, for each arm.

        Raises:
            NotRecordedError: The runs did not log it (round.log_client_accuracy = true).
        """
        return self._of_clients("client-accuracy")

    def plot_client_gain(self) -> go.Figure:
        """How much better or worse off clients are than under the reference arm, paired by client and seed.

        Raises:
            NotRecordedError: The runs did not log it (round.log_client_accuracy = true).
        """
        return self._of_clients("client-gain")

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
        return self._of_clients(f"clients-by-{group}")

    def plot_trigger(self) -> go.Figure:
        """What each arm's trigger measured, against its limit, over rounds."""
        return self._of_reasons("trigger", "no trigger compared anything")

    def plot_silhouettes(self) -> go.Figure:
        """The number of clusters over rounds, and the silhouette of each number tried."""
        return self._of_reasons("silhouettes", "no arm chose a number of clusters by silhouettes")

    def plot_waiting(self) -> go.Figure:
        """What rounds that have closed were waiting for, in virtual time; phases with round.log_visits."""
        return self._of_reasons("waiting", "no round closed by the horizon")

    def plot_timeline(self, arm: str, seed: int, round: int) -> go.Figure:  # noqa: A002
        """The visits of one round as bars: requests, download, compute and upload.

        Args:
            arm: The arm.
            seed: The seed.
            round: The round, from 0.

        Raises:
            NotRecordedError: The run did not log its visits (round.log_visits = true).
            InputError: No such run is finished, or it has no such round.
        """
        run = self._one.run(arm, seed)
        if not 0 <= round < len(run.records):
            raise self._cannot(f"no round {round}; {arm}, seed {seed} has rounds 0 to {len(run.records) - 1}")
        visits = read_columns(self._one.directory, arm, seed)
        if visits is None:
            raise NotRecordedError(str(self.path), "visits", "round.log_visits")
        shown = TimelineRound(arm, seed, run.records[round], visits.of_round(round))
        return timeline_figure([shown]).validated()

    def plot_sections(self) -> list[go.Figure]:
        """The figures of a folder's table: of a sweep, gains against the swept keys.

        Raises:
            InputError: This is a single run directory, or nothing can be drawn.
        """
        if not self._frames.is_folder:
            raise InputError(f"{self.path}: a single run directory; plot_sections is of a folder of them")
        drawn = [section_plots(section, f"section-{index}") for index, section in enumerate(self._sections)]
        if absences := [plots.absence for plots in drawn if plots.absence is not None and not plots.plots]:
            raise InputError(f"{self.path}: {absences[0]}")
        return [plot.figure.validated() for plots in drawn for plot in plots.plots]

    # -- as text -----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """The tables that `driftscale report` prints in a terminal."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            if self._frames.is_folder:
                for section in self._sections:
                    print_section(section)
            elif self._summary.accuracy:
                print_summary(self._summary)
        return "\n".join([text.getvalue().rstrip(), *self._notes()]).lstrip("\n")

    def _repr_html_(self) -> str:
        """The tables of the report, for a notebook."""
        return "".join(str(part) for part in self._parts())

    def _parts(self) -> list[Markup]:
        parts: list[Markup] = []
        if self._frames.is_folder:
            for section in self._sections:
                notes = (runs_horizon(section), *runs_warnings(section))
                parts += [_paragraph(note) for note in notes]
                parts.append(_html_table(section.name, runs_table(section)))
        elif self._summary.accuracy:
            summary = self._summary
            notes = (horizon_note(summary), *map(as_warning, summary.warnings()))
            parts += [_paragraph(note) for note in notes]
            parts.append(_html_table("Accuracy over virtual time", text_table(ACCURACY, summary.accuracy)))
            parts += [
                _html_table(
                    f"Time to {target_name(table, summary.reference_arm)}", text_table(TARGET, table.rows)
                )
                for table in summary.targets
            ]
            costs = text_table(COSTS, summary.costs, in_terminal=True).without_intervals()
            parts.append(_html_table("Cost, mean over seeds", costs))
        return [*parts, *(_paragraph(note) for note in self._notes())]

    def _notes(self) -> list[str]:
        """What is left out of the results, and which option records what they lack, as lines."""
        notes = [] if self._frames.missing_columns is None else [self._frames.missing_columns]
        if not self._frames.is_folder and not self._summary.accuracy:
            reference = self._summary.reference_arm
            notes.insert(0, f"no run of the reference arm {reference!r} is finished: nothing is compared")
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
    def _arms(self) -> list[Arm]:
        summary, order = self._summary, self._one.arms
        if not summary.compared:
            raise self._cannot(f"the reference arm {summary.reference_arm!r} has no finished run")
        return [Arm(arm.arm, arm.runs, arm.curves, order.index(arm.arm)) for arm in summary.compared]

    @cached_property
    def _sections(self) -> list[Section]:
        return build_sections([item.directory for item in self._frames.experiments])

    @cached_property
    def _clients_plots(self) -> dict[str, PlainFigure]:
        section = for_whom(self._one.directory, self._arms, self._summary)
        if section is None:
            raise NotRecordedError(str(self.path), "accuracy of clients", "round.log_client_accuracy")
        return {plot.id: plot.figure for plot in section.plots}

    @cached_property
    def _reasons(self) -> dict[str, PlainFigure]:
        return {plot.id: plot.figure for plot in why_plots(self._one.directory, self._arms, self._summary)}

    def _of_clients(self, name: str) -> go.Figure:
        if name not in self._clients_plots:
            raise self._cannot(f"no figure {name}: the runs do not say which client is in which group")
        return self._clients_plots[name].validated()

    def _of_reasons(self, name: str, absence: str) -> go.Figure:
        if name not in self._reasons:
            raise self._cannot(absence)
        return self._reasons[name].validated()

    def _every_target(self) -> list[TargetTable]:
        tables = every_target(self._summary)
        if not tables or len(self._arms) < 2:
            raise self._cannot("there are not two arms with an evaluation by the horizon")
        return tables

    def _cannot(self, why: str) -> InputError:
        return InputError(f"{self.path}: cannot be drawn: {why}")


def _paragraph(text: str) -> Markup:
    return Markup("<p>{}</p>").format(text)


def _html_table(title: str, shown: TextTable) -> Markup:
    """The table with its title; each figure is above its interval."""
    headings = Markup("").join(Markup("<th>{}</th>").format(heading) for heading in ("arm", *shown.headings))
    rows = Markup("").join(
        Markup("<tr><th>{}</th>{}</tr>").format(
            arm,
            Markup("").join(
                Markup("<td>{}{}</td>").format(
                    cell.figure,
                    Markup("<br><small>{}</small>").format(cell.interval) if cell.interval else "",
                )
                for cell in cells
            ),
        )
        for arm, cells in shown.rows
    )
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        escape(title), headings, rows
    )
