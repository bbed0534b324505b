"""What is kept in `build/`: made once for its key, and never stale."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.wheel import content_key, kept


def test_a_folder_is_made_once_for_its_key_and_anew_for_another_or_if_it_was_not_finished(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "kept"
    made: list[str] = []

    def make(place: Path, key: str, *, fails: bool = False) -> None:
        made.append(key)
        assert list(place.iterdir()) == [], "what was made before is in it"
        (place / "content").write_text(key)
        if fails:
            raise OSError("no space left")

    for key in ("one", "one", "two"):
        kept(folder, key, lambda place, key=key: make(place, key))
        assert (folder / "content").read_text() == key
    assert made == ["one", "two"]
    for fails in (True, False):
        try:
            kept(folder, "three", lambda place, fails=fails: make(place, "three", fails=fails))
        except OSError:
            assert fails
    assert made == ["one", "two", "three", "three"]


def test_the_key_of_a_tree_is_of_its_names_and_contents(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.py"
    file.parent.mkdir()
    file.write_text("1")
    keys = [content_key(tmp_path)]
    file.write_text("1")
    assert content_key(tmp_path) == keys[0]
    file.write_text("2")
    keys.append(content_key(tmp_path))
    file.rename(tmp_path / "a" / "c.py")
    keys.append(content_key(tmp_path))
    (tmp_path / "a" / "d.py").touch()
    keys.append(content_key(tmp_path))
    assert len(set(keys)) == len(keys)


def test_a_folder_in_use_is_not_made_anew_by_another_process(tmp_path: Path) -> None:
    """Another process is another opening of the lock, which waits for all others."""
    kept(tmp_path / "kept", "one", lambda place: None)
    with (tmp_path / "kept.lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
