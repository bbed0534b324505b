"""TensorBoard: one event file for each run, the same bytes whenever the same run is tracked or exported.

The step of a scalar is its round, and its wall time the virtual time at which the round closed, in seconds:
the axis "Relative" of TensorBoard is virtual time since the first round of the curve.

A file is always written from its beginning, in place: a TensorBoard that reads it while a run is resumed
finds the rounds that it has read already unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from emulator.storage.checkpoints import make_folder, naming_file
from emulator.storage.own_files import create_file, open_file, path_below
from experiments.tracking.base import Point, RunFacts, Setting

EVENT_FILE = "events.out.tfevents.0000000000.driftscale"
"""TensorBoard reads all files with `tfevents` in their names; usually they hold the time and the host."""

FILE_VERSION = "brain.Event:2"


class TensorBoardTracker:
    """Writes `<arm>/seed-<n>/` below a folder, one event file in each.

    Args:
        root: A trusted folder, such as a run directory.
        names: Names of the folders from there to the one in which `<arm>/` is made.
    """

    def __init__(self, root: Path, *names: str) -> None:
        self._root, self._names = root, names
        self._path = root
        self._file: BinaryIO | None = None
        self._writer: Any = None

    def begun(self, facts: RunFacts) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        folders = [*self._names, facts.arm, f"seed-{facts.seed}"]
        make_folder(path_below(self._root, *folders, is_folder=True))
        self._path = path_below(self._root, *folders, EVENT_FILE)
        with naming_file(self._path):
            try:
                self._file = create_file(self._path)
            except FileExistsError:
                self._file = open_file(self._path, in_place=True)
                self._file.truncate(0)
        self._writer = RecordWriter(self._file)
        self._write(file_version=FILE_VERSION)
        self._write(summary=_hparams(facts))
        self._write(summary=_text("configuration", _as_table(facts)))

    def round_done(self, point: Point) -> None:
        self._write(wall_time=point.closed_s, step=point.round, summary=_scalars(point.figures))
        assert self._file is not None
        with naming_file(self._path):
            self._file.flush()

    def ended(self, status: str, summary: Mapping[str, float]) -> None:
        if self._file is not None:
            with naming_file(self._path):
                self._file.close()

    def _write(self, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with naming_file(self._path):
            self._writer.write(Event(**{"wall_time": 0.0, **content}).SerializeToString(deterministic=True))


def _scalars(figures: Mapping[str, float]) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in figures.items()])


def _hparams(facts: RunFacts) -> Any:
    """The summary that shows the settings in the tab HParams."""
    from tensorboard.plugins.hparams import summary_v2
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    name = f"{facts.experiment}/{facts.arm}/seed-{facts.seed}"
    summary = summary_v2.hparams_pb(dict(facts.settings), trial_id=name, start_time_secs=0.0)
    data = summary.value[0].metadata.plugin_data
    # Its settings are a map, which is written in another order in each process unless asked otherwise.
    data.content = HParamsPluginData.FromString(data.content).SerializeToString(deterministic=True)
    return summary


def _text(tag: str, text: str) -> Any:
    """The summary that shows `text`, Markdown, in the tab Text."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.text import metadata

    tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()], tensor_shape=TensorShapeProto())
    about = metadata.create_summary_metadata(tag, "")
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=about, tensor=tensor)])


def _as_table(facts: RunFacts) -> str:
    """The settings and the version as a Markdown table."""
    rows: dict[str, Setting] = {"driftscale": facts.version, **facts.settings}
    return "\n".join(["| key | value |", "|---|---|", *(f"| {key} | {_cell(rows[key])} |" for key in rows)])


def _cell(value: Setting) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
