"""The picture of accuracies against samples is the one that the stored figures give."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.writing import budgets, pictures
from docs.writing.evidence import stored


def test_the_picture_is_that_of_the_stored_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "DRAWN", tmp_path)
    budgets.draw(stored()["budgets"]["figures"])
    for page in pictures.PAGES:
        name = f"personal-budgets-{page}.svg"
        assert (tmp_path / name).read_bytes() == (Path("docs/pictures") / name).read_bytes(), "make budgets"
