"""`driftscale traces inspect`: a trace, drawn or read once, and what is known of it by windows of a width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Protocol

from emulator.errors import ConfigurationError, naming
from emulator.seeding import RandomStreams
from experiments.cli.traces.inspected import Facts, Inspected, facts_of
from experiments.reading import load_without_torch
from experiments.shipped import named
from traces.arrivals import SPLITS
from traces.calendar import microseconds
from traces.files import ARRIVALS, ArrivalRows, open_folder
from traces.files.arrivals import When
from traces.files.windows import windows_of_rows
from traces.holders import names_of
from traces.inspection.observations import Observations, trace_observations
from traces.inspection.trace_folder import folder_observations
from traces.inspection.truth import Truth, folder_truth, trace_truth
from traces.inspection.window_choice import Choice, Width, choose_width, days_ladder, grouped, steps_ladder
from traces.sources import TraceContext


class View(Protocol):
    """A trace by windows."""

    def inspected(self, width: Width | None) -> Inspected:
        """The facts by windows of `width`; None for the width that tables have if no option says it.

        Raises:
            InputError: the width does not fit, or the trace is damaged.
        """
        ...

    def choice(self) -> Choice:
        """The narrowest width of a ladder, from the default one on, that shows half of the clients."""
        ...

    def in_words(self, width: Width | None) -> str:
        """What a window of that width is, as in "7 days"."""
        ...


class ConfigView:
    """The trace that a configuration describes; its windows are data steps, or several of them."""

    def __init__(
        self,
        path: Path,
        overrides: Sequence[str],
        data: Sequence[Path],
        seed: int | None,
        min_samples: int,
        min_windows: int,
    ) -> None:
        """Draw the trace.

        Args:
            path: The configuration.
            overrides: The --set options.
            data: The folders of --data.
            seed: The seed of the trace; None for the first one of the configuration.
            min_samples: Samples that a client needs in a window to count as observed.
            min_windows: The clients observed in at least this many windows are counted.

        Raises:
            InputError: the trace cannot be drawn.
        """
        self._min_samples, self._min_windows = min_samples, min_windows
        experiment, locate = load_without_torch(path, overrides, data)
        chosen = experiment.seeds[0] if seed is None else seed
        context = TraceContext(experiment.round.rounds, RandomStreams(chosen), locate)
        self._about: Facts = {"name": experiment.name, "source": experiment.trace.kind}
        self._truth = Truth()
        with naming(named(path)):
            source = experiment.trace.build()
            observed = source.observations(context)
            if observed is not None:
                self._counts: Mapping[str, Observations] = {"observed": observed}
                self._about["of"] = "observations"
                return
            trace = source.build(context)
        self._counts = {split: trace_observations(trace, split) for split in SPLITS}
        self._truth = trace_truth(trace)
        self._about |= {"of": "samples", "seed": chosen}

    def inspected(self, width: Width | None) -> Inspected:
        counts, about = self._counts, self._about
        if width is not None and (isinstance(width, str) or width != int(width)):
            raise ConfigurationError(
                f"--window = {width!r}: the windows of a configuration are data steps, so it must be a whole "
                f"number"
            )
        if width is not None:
            first = self._first.first_step
            about = {**about, "windows": f"{self.in_words(width)}, from {first}"}
            counts = {split: grouped(rows, int(width)) for split, rows in counts.items()}
        return Inspected(
            {**about, **facts_of(counts, self._truth, self._min_samples, self._min_windows)}, counts
        )

    def choice(self) -> Choice:
        return choose_width(self._first, steps_ladder(self._first.num_windows), self._min_samples)

    def in_words(self, width: Width | None) -> str:
        return "a data step" if width in (None, 1) else f"{width:g} data steps"

    @property
    def _first(self) -> Observations:
        return next(iter(self._counts.values()))


def client_names(path: Path, data: Sequence[Path] | None) -> Sequence[str]:
    """The names of the clients in a trace folder, or in the first seed's trace of a configuration.

    Raises InputError if there is no such trace.
    """
    if path.is_dir():
        return [str(name) for name in open_folder(path).rows.clients]
    experiment, locate = load_without_torch(path, (), data)
    context = TraceContext(experiment.round.rounds, RandomStreams(experiment.seeds[0]), locate)
    with naming(named(path)):
        return names_of(experiment.trace.build().build(context))


class FolderView:
    """The rows of a trace folder as they are in the file, by windows as the source `file` has them."""

    def __init__(
        self,
        path: Path,
        since: date | int | None,
        until: date | int | None,
        min_samples: int,
        min_windows: int,
        option: str = "--step-width",
    ) -> None:
        """Open the folder.

        Args:
            path: The folder.
            since: Earlier rows are left out; a date, a step or a rank.
            until: Rows from then on are left out.
            min_samples: Samples that a client needs in a window to count as observed.
            min_windows: The clients observed in at least this many windows are counted.
            option: The option that says the width, for messages.

        Raises:
            InputError: it is not a trace folder, or is damaged.
        """
        self._path, self._since, self._until, self._option = path, since, until, option
        self._min_samples, self._min_windows = min_samples, min_windows
        self._folder = open_folder(path)

    def inspected(self, width: Width | None) -> Inspected:
        return self._default if width is None else self._of_width(width)

    def choice(self) -> Choice:
        rows, first = self._folder.rows, next(iter(self._narrowest.counts.values()))
        num_windows, number = first.num_windows, first.first_step
        ladder = (
            days_ladder(num_windows, number, _origin(rows, self._since))
            if rows.when == "time"
            else steps_ladder(num_windows, number)
        )
        return choose_width(first, ladder, self._min_samples)

    def in_words(self, width: Width | None) -> str:
        one, several = _WINDOWS[self._folder.rows.when]
        if isinstance(width, str):
            return f"a {width}"
        return one if width in (None, 1) else f"{width:g} {several}"

    @cached_property
    def _default(self) -> Inspected:
        return self._of_width(None)

    @property
    def _narrowest(self) -> Inspected:
        """By windows of the first width of the ladder; ranks have no default width."""
        return self.inspected(1 if self._folder.rows.when == "order" else None)

    def _of_width(self, width: Width | None) -> Inspected:
        folder, facts = self._folder, self._folder.facts
        windows = windows_of_rows(
            folder.rows,
            self._path / ARRIVALS,
            width=width,
            since=self._since,
            until=self._until,
            key=lambda key: self._option if key == "step_width" else f"--{key}",
        )
        counts = folder_observations(folder, windows)
        about: Facts = {
            "name": self._path.resolve().name,
            "source": "trace folder",
            "of": "rows",
            "windows": _with_start(folder.rows, width, self._since),
            "origin": facts.origin,
            "licence": facts.licence,
            "shape": list(folder.features.shape),
            "type": str(folder.features.values.dtype),
            "samples_in_the_file": len(folder.features),
            "rows": len(folder.rows),
            "rows_left_out": int((~windows.kept).sum()),
            "sha256": folder.digests,
            **facts.model_dump(mode="json", include={"tokens", "objective"}, exclude_none=True),
        }
        if (numbers := folder.features.numbers) is not None:
            about["targets"] = {"number": numbers.shape[1], "type": str(numbers.dtype)}
            about["targets"] |= {"from": float(numbers.min()), "to": float(numbers.max())}
        truth = folder_truth(folder, windows)
        return Inspected({**about, **facts_of(counts, truth, self._min_samples, self._min_windows)}, counts)


_WINDOWS: Mapping[When, tuple[str, str]] = {
    "time": ("a day", "days"),
    "step": ("a step", "steps"),
    "order": ("a rank", "ranks"),
}
"""What a window is of a column of that name: of width 1, and the unit of wider ones."""


def _origin(rows: ArrivalRows, since: date | int | None) -> int:
    """The microseconds since 1970-01-01 at which windows of times begin."""
    return microseconds(since) if isinstance(since, date) else int(rows.at.min())


def _with_start(rows: ArrivalRows, width: Width | None, since: date | int | None) -> str:
    """What the windows of the rows are, and when they begin; `width` fits them."""
    if rows.when == "step":
        return "step" if width in (None, 1) else f"{width:g} steps"
    start = int(rows.at.min()) if since is None else since
    if rows.when == "order":
        return f"{width:g} ranks of each client, from {start}"
    if not isinstance(start, date):
        start = (datetime(1970, 1, 1) + timedelta(microseconds=start)).date()
    if isinstance(width, str):
        return f"{width}, from {start:%Y-%m}"
    return f"{'day' if width in (None, 1) else f'{width:g} days'}, from {start}"
