"""The recipe of docs/searching.md searches on seeds that its configuration does not report."""

from __future__ import annotations

import re

from experiments.cli.app import _parse_seeds
from experiments.reading import read_table
from tests.docs.blocks import read_page
from tests.docs.product import shipped_files


def test_a_search_is_on_seeds_that_are_not_reported() -> None:
    [recipe] = [block for block in read_page("docs/searching.md").blocks if block.language == "python"]
    found = re.search(r'"driftscale run (\S+) .*--seeds ([\d.,]+)', recipe.content)
    assert found is not None
    [config] = shipped_files(found[1])
    searched, reported = _parse_seeds(found[2]), read_table(config)["seeds"]
    assert searched
    assert not {*searched} & {*reported}
