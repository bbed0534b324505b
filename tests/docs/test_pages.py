"""Every block of README and docs is read, and its options, keys, names and columns are checked."""

from __future__ import annotations

import pytest

from tests.docs.blocks import documented_files, read_page
from tests.docs.check_page import problems_of_page


@pytest.mark.parametrize("name", documented_files())
def test_the_blocks_of_a_page_are_of_this_version(name: str) -> None:
    problems = problems_of_page(read_page(name))
    assert not problems, "\n".join(["", *problems])
