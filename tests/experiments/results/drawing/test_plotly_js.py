from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import ForeignFileError
from experiments.results.pages import plotly_path, write_plotly


def test_the_file_is_written_where_its_content_differs_only(tmp_path: Path) -> None:
    write_plotly(tmp_path)
    path = plotly_path(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["plotly.min.js"]
    content, written = path.read_bytes(), path.stat().st_mtime_ns
    assert b"plotly.js v" in content[:100]
    write_plotly(tmp_path)
    assert path.stat().st_mtime_ns == written
    for other in (b"", b"x", content[:-1] + b"x", content + b"x"):
        path.write_bytes(other)
        write_plotly(tmp_path)
        assert path.read_bytes() == content


def test_a_link_in_its_place_is_refused_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    plotly_path(tmp_path).symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(ForeignFileError, match=r"plotly\.min\.js: is a link to"):
        write_plotly(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "precious"
