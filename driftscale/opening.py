"""`driftscale.open_trace`, and the trace folder that it and `driftscale.write_trace` return."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from driftscale.arguments import AnyPath, path_of, plain, settings_of
from driftscale.one_line import one_line
from emulator.errors import ConfigurationError, InputError, abbreviated

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from emulator.ports import Split
    from traces.files import TraceFolder as Files
    from traces.files.arrivals import When
    from traces.sources.file import FileSettings
    from traces.trace import Trace

PLAYED = ("source", "folder", "build")
"""Keys of a configuration's [trace] that the folder itself stands for."""


class _Played(NamedTuple):
    """A trace that was played: by which settings and seed, and for how many data steps.

    `taking_part` (clients,) are its clients, as numbers among those of the folder.
    """

    key: object
    steps: int
    taking_part: np.ndarray
    trace: Trace


class TraceFolder:
    """A trace folder, opened; it shows itself in a line or two.

    Attributes:
        path: The folder.
        notes: Remarks of the build that made it, such as how many rows were left out; none if it was opened.
        settings: The keys of a configuration's [trace] that play it.
    """

    def __init__(
        self, files: Files, *, notes: tuple[str, ...] = (), play: Mapping[str, object] | None = None
    ) -> None:
        """Of a folder that the engine has opened and checked."""
        self._files = files
        self._played: _Played | None = None
        self.path: Path = files.path
        self.notes = notes
        self.settings: dict[str, Any] = {"source": "file", "folder": str(files.path), **(play or {})}

    @property
    def features(self) -> np.ndarray:
        """The samples as they are stored, (samples, *shape) uint8 or float32: mapped, and read-only."""
        return self._files.features.values

    def inputs(self, samples: Any) -> np.ndarray:
        """Some samples as models take them: scaled, and standardised by channel.

        Args:
            samples: Rows of `features`, (n,), such as the column `sample` of `held`.

        Returns:
            float32, of shape (n, *shape); without what a configuration changes of them, as by a drift.
        """
        import numpy as np

        return self._files.features.features(np.asarray(samples))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes: label i of a model is `classes[i]`."""
        return self._files.rows.classes

    @property
    def facts(self) -> dict[str, Any]:
        """The content of trace.toml: shape, scale, mean and deviation of each channel, origin, digests."""
        return self._files.facts.model_dump(mode="json", by_alias=True, exclude_none=True)

    @property
    def arrivals(self) -> pd.DataFrame:
        """A row for each arrival, in the order of the file.

        Its columns are `client`, `label` (categorical, of `classes`), `sample` (a row of `features`), when it
        arrives (`step`, `time` or `order`), and those of `split`, `count`, `concept` and `expiry` that there
        are; an expiry is missing where a client holds the sample to the end.
        """
        import pandas as pd

        from traces.arrivals import SPLITS

        rows = self._files.rows
        columns: dict[str, Any] = {
            "client": self._names(rows.client),
            "label": pd.Categorical.from_codes(rows.label, list(rows.classes)),
            "sample": rows.sample,
            rows.when: self._instants(rows.when, rows.at),
        }
        if rows.expiry is not None:
            columns["expiry"] = self._expiries(rows.when, rows.expiry)
        if rows.split is not None:
            columns["split"] = pd.Categorical.from_codes(rows.split, list(SPLITS))
        columns |= {
            name: values
            for name, values in (("count", rows.count), ("concept", rows.concept))
            if values is not None
        }
        return pd.DataFrame(columns)

    @one_line
    def held(
        self,
        step: int,
        *,
        split: Split = "train",
        client: str | int | None = None,
        seed: int = 0,
        **trace: Any,
    ) -> pd.DataFrame:
        """The samples that clients hold at a data step of a run, as the source `file` plays the folder.

            folder.held(3, step_width=7, retain_rounds=20).groupby("client").label.value_counts()

        Without keys of [trace] it is played with the defaults of the source.

        Args:
            step: The data step, from 0 on; a run of r rounds has r / rounds_per_step of them.
            split: Whether the samples that clients train on, or those that they are tested on.
            client: The name of a client, as in `arrivals`; default: all.
            seed: The seed of the run, which draws the test samples where the folder does not say.
            **trace: Keys of the configuration's [trace], such as step_width, rounds_per_step (10),
                retain_rounds (50), since, until or test_share; `settings` of this folder are allowed.

        Returns:
            A row for each sample that a client holds, by client and time of arrival, with the columns
            `client`, `label` (categorical), `sample` (a row of `features`) and `arrival`: the data step at
            which it arrived, 0 or less if the client owned it from the start. A sample is there as often as
            `count` says.

        Raises:
            EmulatorError: Of one line: a key does not fit, or there is no such client.
        """
        import numpy as np
        import pandas as pd

        from traces.arrivals import SPLITS
        from traces.tables.base import rows_of_ranges

        if split not in SPLITS:
            raise InputError(f"split = {split!r}: must be {' or '.join(SPLITS)}")
        if isinstance(step, bool) or not hasattr(step, "__index__") or step < 0:
            raise InputError(f"step = {step!r}: must be a whole number from 0 on")
        taking_part, played = self._play(int(step), plain(seed, "seed"), trace)
        ids = np.arange(played.num_clients)
        if client is not None:
            ids = np.flatnonzero(taking_part == self._number_of(client))
        ranges = played.held(ids, split, int(step))
        rows = rows_of_ranges(ranges.first, ranges.last)
        return pd.DataFrame(
            {
                "client": self._names(np.repeat(taking_part[ids], ranges.counts())),
                "label": pd.Categorical.from_codes(played.labels(rows), list(self.classes)),
                "sample": played.table.take("image", rows),
                "arrival": played.table.arrival(rows),
            }
        )

    def _play(self, step: int, seed: int, given: Mapping[str, Any]) -> tuple[np.ndarray, Trace]:
        """The numbers of the clients that take part, and the trace as the source `file` builds it.

        It is built once for all data steps, and kept until it is asked for with other settings.
        """
        from emulator.seeding import RandomStreams
        from traces.sources.base import TraceContext
        from traces.sources.file import File

        settings = self._settings_of(given)
        key = (repr(settings), seed)
        if self._played is None or self._played.key != key or self._played.steps <= step:
            source = File(settings)
            taking_part, last_step = source.taking_part(self._files)
            steps = max(step, last_step) + 1
            context = TraceContext(steps * settings.rounds_per_step, RandomStreams(seed), Path)
            self._played = _Played(key, steps, taking_part, source.build(context))
        return self._played.taking_part, self._played.trace

    def _settings_of(self, given: Mapping[str, Any]) -> FileSettings:
        """The settings of the source `file` for this folder; ConfigurationError if they are wrong."""
        from traces.sources.file import FileSettings

        for key in ("source", "folder"):
            if given.get(key, self.settings[key]) != self.settings[key]:
                raise ConfigurationError(
                    f"{key} = {given[key]!r}: this is the folder {self.path}, played by the source file"
                )
        chosen = {key: value for key, value in given.items() if key not in PLAYED}
        return settings_of(FileSettings, {**chosen, "folder": str(self.path)}, "held")

    def _number_of(self, client: object) -> int:
        """The number of the client of that name; InputError if there is none."""
        clients = self._files.rows.clients
        names = list(clients) if isinstance(clients, tuple) else clients.tolist()
        if client not in names:
            shown = abbreviated([repr(name) for name in names], ", ")
            raise InputError(f"client = {client!r}: no such client; the trace has {shown}")
        return names.index(client)

    def _names(self, numbers: np.ndarray) -> np.ndarray:
        """(n,) the names of the clients with these numbers."""
        import numpy as np

        clients = self._files.rows.clients
        names: np.ndarray = (np.array(clients, dtype=object) if isinstance(clients, tuple) else clients)[
            numbers
        ]
        return names

    def _expiries(self, when: When, expiry: np.ndarray) -> Any:
        """(rows,) when each row expires, as `_instants` has it; missing where it never does."""
        import pandas as pd

        from traces.files.expiry import never

        is_never = expiry == never(expiry)
        known = expiry.copy()
        known[is_never] = 0
        values = pd.Series(self._instants("expiry" if when == "time" else when, known))
        return (values if when == "time" else values.astype("Int64")).mask(is_never)

    def _instants(self, column: str, at: np.ndarray) -> Any:
        """(rows,) instants of a column of arrivals.parquet: data steps, ranks, or timestamps."""
        import pandas as pd
        import pyarrow.parquet as pq

        from traces.files import ARRIVALS

        if self._files.rows.when != "time":
            return at
        times = pd.Series(at.astype("datetime64[us]"))
        zone = getattr(pq.read_schema(self.path / ARRIVALS).field(column).type, "tz", None)
        return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)

    def __repr__(self) -> str:
        return "\n".join([self._summary, *self.notes])

    @property
    def _summary(self) -> str:
        """One line: who and what, and when."""
        import numpy as np

        from traces.arrivals import SPLITS

        rows = self._files.rows
        first, last = int(rows.at.min()), int(rows.at.max())
        span = f"{first} to {last}"
        if rows.when == "time":
            days = np.array([first, last], "datetime64[us]").astype("datetime64[D]")
            span = f"{days[0]} to {days[1]}"
        samples = f"{len(rows):,} samples"
        if rows.split is not None:
            counts = np.bincount(rows.split, minlength=len(SPLITS))
            samples = f"{counts[0]:,} training and {counts[1]:,} test samples"
        return (
            f"{self.path}: {len(rows.clients):,} clients, {samples} of {len(rows.classes)} classes, shape "
            f"{self._files.features.shape}; {rows.when} {span}"
        )


@one_line
def open_trace(folder: AnyPath) -> TraceFolder:
    """Open a trace folder: its samples, its arrivals, and what each client holds at each step.

        folder = driftscale.open_trace("traces/sensors")
        folder.arrivals.groupby("client").label.value_counts()
        folder.held(3, step_width=7)

    Nothing is written, and digests are not compared: `driftscale traces check` does that.

    Args:
        folder: A trace folder, as `driftscale traces build` or `driftscale.write_trace` makes it.

    Returns:
        The folder, whose samples are mapped from the file and not read.

    Raises:
        EmulatorError: Of one line: a file of the folder is missing, damaged, or does not fit the others.
    """
    from traces.files import open_folder

    return TraceFolder(open_folder(path_of(folder, "folder")))
