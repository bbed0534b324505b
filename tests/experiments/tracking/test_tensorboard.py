"""Event files, read back by TensorBoard where it is installed: pip install 'driftscale[tensorboard]'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.errors import ForeignFileError
from experiments.tracking.base import Point
from experiments.tracking.tensorboard import EVENT_FILE, TensorBoardTracker
from tests.experiments.tracking.fakes import FACTS

pytest.importorskip("tensorboard")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

POINTS = [
    Point(0, 12.5, {"accuracy": 0.25}),
    Point(1, 25.0, {"num_clusters": 3.0}),
    Point(2, 86400.5, {"accuracy": 0.75}),
]


def write(root: Path, points: list[Point] = POINTS) -> Path:
    tracker = TensorBoardTracker(root, "export", "tensorboard")
    tracker.begun(FACTS)
    for point in points:
        tracker.round_done(point)
    tracker.ended("finished", {})
    return root / "export" / "tensorboard" / "global" / "seed-0" / EVENT_FILE


def read(path: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(path.parent))
    events.Reload()
    return events


def test_a_scalar_has_its_round_and_its_virtual_time(tmp_path: Path) -> None:
    events = read(write(tmp_path))
    assert sorted(events.Tags()["scalars"]) == ["accuracy", "num_clusters"]
    accuracy = [(event.step, event.wall_time, event.value) for event in events.Scalars("accuracy")]
    assert accuracy == [(0, 12.5, 0.25), (2, 86400.5, 0.75)]
    assert [(event.step, event.wall_time) for event in events.Scalars("num_clusters")] == [(1, 25.0)]


def test_the_settings_are_shown_as_text_and_as_hyperparameters(tmp_path: Path) -> None:
    events = read(write(tmp_path))
    (text,) = events.Tensors("configuration/text_summary")
    assert text.tensor_proto.string_val[0].decode().splitlines() == [
        "| key | value |",
        "|---|---|",
        "| driftscale | 0.1.0 |",
        "| round.rounds | 3 |",
        "| arm.name | global |",
    ]
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    assert (hparams["round.rounds"].number_value, hparams["arm.name"].string_value) == (3.0, "global")


def test_tracking_a_run_again_writes_the_same_bytes_in_place(tmp_path: Path) -> None:
    path = write(tmp_path)
    content, inode = path.read_bytes(), path.stat().st_ino
    longer = write(tmp_path, [*POINTS, Point(3, 9e4, {"accuracy": 1.0})]).read_bytes()
    assert longer.startswith(content)  # what a TensorBoard has read stays as it was
    assert write(tmp_path).read_bytes() == content
    assert path.stat().st_ino == inode
    assert [file.name for file in path.parent.iterdir()] == [EVENT_FILE]


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "export").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ForeignFileError, match="is a link"):
        write(tmp_path)
    assert not any((tmp_path / "elsewhere").iterdir())
