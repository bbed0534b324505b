"""Building: the same bytes for any number of threads and after any interruption."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from emulator.arrays import Ints
from emulator.errors import ForeignFileError, InputError, ResumableError
from tests.processes import forked
from tests.traces.building.layouts import build, colour, mapping, opened, pixels, rows
from traces.building import Watch, image_values, writing
from traces.building.pixels import Encoded, ImageFiles
from traces.building.remarks import PIXELS_STANDARDISED
from traces.building.workspace import workspace
from traces.building.writing import FeatureRows

FILES = ("arrivals.parquet", "features.npy", "trace.toml")


def drawn(root: Path, number: int = 200) -> Path:
    return mapping(root, [(f"c{k % 3}", f"l{k % 5}", k % 5) for k in range(number)])


def content(folder: Path) -> dict[str, bytes]:
    assert sorted(path.name for path in folder.iterdir()) == list(FILES)
    return {name: (folder / name).read_bytes() for name in FILES}


def interrupting(after: int) -> Watch:
    """Interrupts a build once that many images are done."""

    def progress(done: int, total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    return Watch(progress=progress)


# -- the result ---------------------------------------------------------------------------------------------


def test_rows_and_samples_are_in_the_order_of_client_split_and_time(tmp_path: Path) -> None:
    folder = opened("fedscale", drawn(tmp_path / "d"), tmp_path / "out", buckets=5, size=4)
    assert folder.rows.split is not None
    order = np.lexsort((folder.rows.at, folder.rows.split, folder.rows.client))
    assert (order == np.arange(200)).all()
    assert (folder.rows.sample == np.arange(200)).all()
    table = pq.read_table(tmp_path / "out" / "arrivals.parquet")
    assert table.column_names == ["client", "label", "sample", "step", "split"]


def test_one_in_five_samples_of_each_client_and_label_is_held_out_by_seed(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d", 150)  # ten samples of each of three clients and five labels
    first = rows(opened("fedscale", root, tmp_path / "a", size=4))
    counts: dict[tuple[str, str], int] = {}
    for client, label, _, split in first:
        counts[client, label] = counts.get((client, label), 0) + (split == "test")
    assert set(counts.values()) == {2}
    assert len(counts) == 15
    half = rows(opened("fedscale", root, tmp_path / "b", size=4, test_share=0.5))
    assert sum(split == "test" for *_, split in half) == 75


def test_mean_and_deviation_are_those_of_the_training_rows(tmp_path: Path) -> None:
    folder = opened("fedscale", drawn(tmp_path / "d"), tmp_path / "out", size=4)
    train = folder.features.values[folder.rows.split == 0] / 255
    assert folder.facts.mean == pytest.approx(train.mean(axis=(0, 2, 3)))
    deviation = train.std(axis=(0, 2, 3))
    deviation[deviation == 0] = 1  # a channel that is the same everywhere
    assert folder.facts.deviation == pytest.approx(deviation)


@pytest.mark.parametrize("workers", [2, 7])
def test_any_number_of_threads_gives_the_same_bytes(tmp_path: Path, workers: int) -> None:
    root = drawn(tmp_path / "d")
    build("fedscale", root, tmp_path / "one", size=4)
    build("fedscale", root, tmp_path / "more", workers=workers, size=4)
    assert content(tmp_path / "one") == content(tmp_path / "more")


def test_a_limit_takes_evenly_spread_samples_of_all_clients(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d")
    folder = opened("fedscale", root, tmp_path / "out", limit=30, buckets=5, size=4, test_share=0)
    assert len(folder.rows) == 30
    assert np.bincount(folder.rows.client).tolist() == [10, 10, 10]
    assert {at for _, _, at, _ in rows(folder)} == {0, 1, 2, 3, 4}
    more = build("fedscale", root, tmp_path / "all", limit=1000, size=4)
    assert more.train + more.test == 200


# -- interruptions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 64, 200])
def test_an_interrupted_build_resumes_where_it_was_and_ends_with_the_same_bytes(
    tmp_path: Path, after: int
) -> None:
    root = drawn(tmp_path / "d")
    build("fedscale", root, tmp_path / "whole", size=4)
    with pytest.raises(KeyboardInterrupt):
        build("fedscale", root, tmp_path / "out", watch=interrupting(after), size=4)
    assert not (tmp_path / "out").exists()
    for name in ("0000.png", "0032.png"):  # which are done, if more than a block is
        if after > 64:
            (root / "train" / name).unlink()
    seen: list[int] = []
    build("fedscale", root, tmp_path / "out", watch=Watch(lambda done, total: seen.append(done)), size=4)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert len(seen) < 13 or after == 1
    assert not (tmp_path / "out.building").exists()


def test_a_build_that_is_killed_resumes_from_its_last_record(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d", 400)
    build("fedscale", root, tmp_path / "whole", size=4)
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom tests.traces.building.layouts import build\n"
        "from traces.building import Watch, writing\nwriting.RECORD_EVERY_S = 0\n"
        f"root, out = Path({str(root)!r}), Path({str(tmp_path / 'out')!r})\n"
        "def kill(done, total):\n    if done >= 200: os.kill(os.getpid(), signal.SIGKILL)\n"
        "build('fedscale', root, out, watch=Watch(kill), size=4)\n"
    )
    killed = forked.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "out").exists()
    seen: list[int] = []
    build("fedscale", root, tmp_path / "out", watch=Watch(lambda done, total: seen.append(done)), size=4)
    assert seen[0] > 32
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("what", ["folder", "file", "link"])
@pytest.mark.parametrize("fresh", [False, True])
def test_nothing_of_the_users_is_taken_for_an_unfinished_build(
    tmp_path: Path, what: str, fresh: bool
) -> None:
    place, kept = tmp_path / "out.building", tmp_path / "kept"
    kept.mkdir()
    (kept / "thesis.txt").write_text("x")
    if what == "folder":
        kept.rename(place)
    elif what == "link":
        place.symlink_to(kept)
    else:
        place.write_text("x")
    with (
        pytest.raises(InputError, match=r"out\.building: is no unfinished build; move it away"),
        workspace(tmp_path / "out", {}, fresh=fresh),
    ):
        pass
    assert place.is_file() or (place / "thesis.txt").exists()


@pytest.mark.parametrize("name", ["features.npy", "arrivals.parquet", "trace.toml", "plan.json"])
@pytest.mark.parametrize("resumed", [False, True])
def test_nothing_behind_a_link_in_the_workspace_is_written(tmp_path: Path, name: str, resumed: bool) -> None:
    root, victim = drawn(tmp_path / "d", 40), tmp_path / "victim"
    victim.write_text("x")
    place = tmp_path / "out.building" / name
    if resumed:
        with pytest.raises(KeyboardInterrupt):
            build("fedscale", root, tmp_path / "out", watch=interrupting(1), size=4)
        place.unlink(missing_ok=True)
    else:
        place.parent.mkdir()
    place.symlink_to(victim)
    with pytest.raises(ForeignFileError, match=rf"{name}: is a link to .*victim; .* move it away"):
        build("fedscale", root, tmp_path / "out", size=4)
    assert victim.read_text() == "x"
    assert place.is_symlink()


def test_a_second_name_of_the_features_is_not_written_through(tmp_path: Path) -> None:
    root, victim = drawn(tmp_path / "d", 40), tmp_path / "victim"
    with pytest.raises(KeyboardInterrupt):
        build("fedscale", root, tmp_path / "out", watch=interrupting(32), size=4)
    features = tmp_path / "out.building" / "features.npy"
    victim.hardlink_to(features)
    before = victim.read_bytes()
    with pytest.raises(ForeignFileError, match=r"features\.npy: has another name elsewhere"):
        build("fedscale", root, tmp_path / "out", size=4)
    (tmp_path / "out.building" / "progress.json").unlink()  # so that the build begins again
    build("fedscale", root, tmp_path / "out", size=4)
    assert victim.read_bytes() == before


def test_an_interrupted_build_is_resumed_by_the_same_options_only(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d")
    with pytest.raises(KeyboardInterrupt):
        build("fedscale", root, tmp_path / "out", watch=interrupting(32), size=4)
    with pytest.raises(InputError, match="build of out was begun with another shape, size; give --fresh"):
        build("fedscale", root, tmp_path / "out", size=8)
    mapping(root, [("c0", "l0", 0)] * 3)
    with pytest.raises(InputError, match="begun with another listing, samples"):
        build("fedscale", root, tmp_path / "out", size=4)


@pytest.mark.parametrize("how", ["killed", "refused"])
def test_a_build_that_decoded_nothing_does_not_block_the_corrected_command(tmp_path: Path, how: str) -> None:
    root = drawn(tmp_path / "d")
    if how == "killed":
        with pytest.raises(KeyboardInterrupt):
            build("fedscale", root, tmp_path / "out", watch=interrupting(1), size=8)
        assert (tmp_path / "out.building").exists()
    else:
        (root / "train" / "0000.png").write_bytes(b"x")
        with pytest.raises(InputError, match=r"0000\.png .*: is not an image"):
            build("fedscale", root, tmp_path / "out", size=8)
        assert not list(tmp_path.glob("out*"))
        drawn(tmp_path / "d")
    build("fedscale", root, tmp_path / "out", size=4)
    build("fedscale", root, tmp_path / "whole", size=4)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_build_that_ends_after_some_images_is_kept_for_the_same_command(tmp_path: Path) -> None:
    """Image 199 is of client c1, whose images come after the 67 of c0."""
    root = damaged(drawn(tmp_path / "d"), 199)
    with pytest.raises(InputError, match=r"0199\.png"):
        build("fedscale", root, tmp_path / "out", size=4, test_share=0)
    with pytest.raises(InputError, match="was begun with another shape, size"):
        build("fedscale", root, tmp_path / "out", size=8, test_share=0)
    seen: list[int] = []
    watch = Watch(lambda done, total: seen.append(done))
    build("fedscale", root, tmp_path / "out", size=4, test_share=0, skip_bad=1, watch=watch)
    assert seen[0] > 67


def test_a_second_build_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d", 10)
    build("fedscale", root, tmp_path / "out", size=4)
    before = content(tmp_path / "out")
    with pytest.raises(InputError, match=r"out: exists already; delete it, or take another name"):
        build("fedscale", root, tmp_path / "out", size=4)
    assert content(tmp_path / "out") == before


def test_a_folder_that_is_complete_is_not_read_any_more_and_has_as_many_bytes_as_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out, iterdir = drawn(tmp_path / "d", 10), tmp_path / "out", Path.iterdir

    def unreadable(folder: Path) -> Iterator[Path]:
        if folder == out:
            raise OSError(errno.EIO, "Input/output error", str(folder))
        return iterdir(folder)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", unreadable)
        built = build("fedscale", root, out, size=4)
    assert built.num_bytes == sum(map(len, content(out).values()))


def test_a_workspace_without_its_features_is_not_resumed(tmp_path: Path) -> None:
    root = drawn(tmp_path / "d")
    with pytest.raises(KeyboardInterrupt):
        build("fedscale", root, tmp_path / "out", watch=interrupting(32), size=4)
    (tmp_path / "out.building" / "features.npy").unlink()
    with pytest.raises(InputError, match=r"features\.npy: is missing; give --fresh"):
        build("fedscale", root, tmp_path / "out", size=4)


@pytest.mark.parametrize("where", ["at the start", "while writing"])
def test_a_full_disk_ends_in_one_line_and_the_same_build_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    root = drawn(tmp_path / "d")
    build("fedscale", root, tmp_path / "whole", size=4)
    calls = itertools.count()

    def full(*arguments: object) -> int:
        if where == "at the start" or next(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.pwrite(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        fake = type(
            "Full", (), {**vars(os), "posix_fallocate" if where == "at the start" else "pwrite": full}
        )
        patched.setattr(writing, "os", fake)
        with pytest.raises(
            ResumableError, match="No space left on device; make room, and give the same command"
        ):
            build("fedscale", root, tmp_path / "out", size=4)
    assert not (tmp_path / "out").exists()
    build("fedscale", root, tmp_path / "out", size=4)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_space_is_taken_when_the_file_is_created(tmp_path: Path) -> None:
    with FeatureRows(tmp_path / "features.npy", (1000, 3, 4, 4), resume=False):
        assert (tmp_path / "features.npy").stat().st_blocks * 512 >= 48_000


def test_an_error_as_the_file_is_closed_has_its_name(tmp_path: Path) -> None:
    rows = FeatureRows(tmp_path / "features.npy", (2, 3), resume=False)
    os.close(rows._file)
    with pytest.raises(OSError, match="Bad file descriptor") as raised, rows:
        pass
    assert raised.value.filename == str(tmp_path / "features.npy")


def test_an_error_without_a_file_has_the_name_of_the_unfinished_build(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output error") as raised, workspace(tmp_path / "out", {}):
        raise OSError(errno.EIO, "Input/output error")
    assert raised.value.filename == str(tmp_path / "out.building")


# -- bad samples --------------------------------------------------------------------------------------------


def damaged(root: Path, *numbers: int) -> Path:
    for number in numbers:
        path = root / "train" / f"{number:04d}.png"
        path.write_bytes(path.read_bytes()[:40])
    return root


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_bad_image_ends_a_build_whichever_thread_meets_it(tmp_path: Path, workers: int) -> None:
    """Clients come one after the other: image 3, of client c0, is decoded before 1, 31 and 100 of c1."""
    root = damaged(drawn(tmp_path / "d"), 1, 3, 31, 100)
    with pytest.raises(InputError) as refused:
        build("fedscale", root, tmp_path / "out", workers=workers, size=4, test_share=0)
    path = root / "train" / "0003.png"
    assert str(refused.value).startswith(
        f"{path} (client_data_mapping/train.csv, row 4): is not an image, or damaged"
    )
    assert str(refused.value).endswith("; --skip-bad N leaves out at most N samples that cannot be read")
    assert not (tmp_path / "out").exists()


def test_bad_images_are_left_out_named_and_counted_up_to_a_number(tmp_path: Path) -> None:
    root = damaged(drawn(tmp_path / "d"), 1, 3, 31)
    with pytest.raises(InputError, match=r"with it 3 samples cannot be read, and --skip-bad is 2"):
        build("fedscale", root, tmp_path / "out", skip_bad=2, size=4)
    notes: list[str] = []
    built = build("fedscale", root, tmp_path / "out", skip_bad=3, size=4, watch=Watch(note=notes.append))
    assert (built.left_out, built.train + built.test) == (3, 197)
    assert (
        sum("0031.png (client_data_mapping/train.csv, row 32): is not an image" in note for note in notes)
        == 1
    )
    again = opened("fedscale", root, tmp_path / "again", skip_bad=3, size=4)
    assert content(tmp_path / "out") == content(tmp_path / "again")
    assert again.facts.origin.endswith("3 of 200 samples are left out, as they cannot be read.")
    found = pixels(again)
    assert sorted(map(tuple, found)) == sorted(colour(k) for k in range(200) if k not in (1, 3, 31))
    train = again.features.values[again.rows.sample][again.rows.split == 0] / 255
    assert again.facts.mean == pytest.approx(train.mean(axis=(0, 2, 3)))


def test_an_image_that_is_repaired_before_the_build_is_resumed_is_not_left_out(tmp_path: Path) -> None:
    """Images 60 and 63 are of the second block, which ends the build."""
    root = drawn(tmp_path / "d")
    build("fedscale", root, tmp_path / "whole", size=4, test_share=0)
    kept = {number: (root / "train" / f"{number:04d}.png").read_bytes() for number in (60, 63)}
    with pytest.raises(InputError, match="with it 2 samples cannot be read"):
        build("fedscale", damaged(root, *kept), tmp_path / "out", skip_bad=1, size=4, test_share=0)
    for number, image in kept.items():
        (root / "train" / f"{number:04d}.png").write_bytes(image)
    assert build("fedscale", root, tmp_path / "out", skip_bad=1, size=4, test_share=0).left_out == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_resumed_build_leaves_out_no_more_than_it_may_now(tmp_path: Path) -> None:
    root = damaged(drawn(tmp_path / "d"), 3)
    with pytest.raises(KeyboardInterrupt):
        build("fedscale", root, tmp_path / "out", watch=interrupting(200), skip_bad=1, size=4, test_share=0)
    with pytest.raises(InputError, match=r"0003\.png .*: is not an image.*; --skip-bad N leaves out at most"):
        build("fedscale", root, tmp_path / "out", size=4, test_share=0)


def test_a_client_whose_training_samples_are_all_bad_is_left_out(tmp_path: Path) -> None:
    root = mapping(tmp_path / "d", [("a", "x", 0), ("b", "x", 0)])
    mapping(root, [("a", "x", 0), ("b", "x", 0)], "test")
    built = build("fedscale", damaged(root, 1), tmp_path / "out", skip_bad=1, test_mapping=True, size=4)
    assert (built.clients, built.train, built.test, built.left_out) == (1, 1, 1, 2)
    with pytest.raises(InputError, match="no sample is left that can be read"):
        build("fedscale", damaged(root, 0), tmp_path / "none", skip_bad=2, test_mapping=True, size=4)


def test_no_more_images_are_read_than_the_queue_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that is far ahead of the decoders would fill the memory."""
    monkeypatch.setattr(image_values, "BLOCK", 1)
    root, stream = drawn(tmp_path / "d", 50), ImageFiles.stream
    read, done, ahead = itertools.count(1), [0], []

    def counted(self: ImageFiles, images: Ints) -> Iterator[Encoded]:
        for item in stream(self, images):
            ahead.append(next(read) - done[-1])
            yield item

    monkeypatch.setattr(ImageFiles, "stream", counted)
    watch = Watch(progress=lambda images, total: done.append(images))
    build("fedscale", root, tmp_path / "out", workers=3, watch=watch, size=4)
    assert len(ahead) == 50
    assert max(ahead) == 3 * writing.AHEAD


def test_clients_that_a_limit_leaves_with_test_samples_only_are_left_out(tmp_path: Path) -> None:
    """Of 9 + 1 training and 10 test samples, a limit of 4 takes two of client a and two tests of b."""
    root = mapping(tmp_path / "d", [("a", "x", 0)] * 9 + [("b", "x", 0)])
    mapping(root, [("b", "x", 0)] * 10, "test")
    built = build("fedscale", root, tmp_path / "out", limit=4, test_mapping=True, size=4)
    assert (built.clients, built.train, built.test) == (1, 2, 0)
    assert built.notes[1:] == (
        "1 client(s) with test samples only are left out",
        "only 1 client: federated learning needs several; check what says whose a row is",
        "1 of 1 clients has no test samples, and is not scored: the data set says which samples are for "
        "tests",
        PIXELS_STANDARDISED,
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make a file")
def test_a_folder_that_takes_no_file_is_not_said_to_be_at_work() -> None:
    with (
        pytest.raises(InputError, match=r"^--out /proc/out: cannot be written in /proc$"),
        workspace(Path("/proc/out"), {}),
    ):
        pass
