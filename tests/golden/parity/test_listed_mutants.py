"""Mutants that these tests notice; `python -m tests.mutants` plays them (README.md)."""

from __future__ import annotations

from collections import Counter

from tests.golden.parity.recorded import recorded
from tests.mutants import ROOT, Mutant


def test_each_listed_mutant_can_still_be_made() -> None:
    listed = recorded("mutants")
    lines = {item["file"]: Counter((ROOT / item["file"]).read_text().splitlines()) for item in listed}
    for item in listed:
        mutant = Mutant(*(item[key] for key in ("file", "line", "mutated", "kind")))
        assert lines[mutant.file][mutant.line] == 1, mutant
        assert mutant.mutated != mutant.line
        assert item["ending"] == "killed"
    assert len({(item["file"], item["line"], item["mutated"]) for item in listed}) == len(listed)
