"""The page of an atlas: its heat map in greys, its links, and names from outside."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from experiments.results.many_runs.atlas_table import atlas_tables
from experiments.results.pages.atlas_page import as_markdown, render_atlas
from experiments.results.statistics.atlas.verdicts import Column, Figures
from tests.experiments.results.pages.test_hostile_names import HOSTILE, Shape

LEVELS = {"best": 0.6, "avg": 0.59, "near": 0.575, "far": 0.55, "worse": 0.52, "worst": 0.4, "oracle": 0.9}


def column(name: str = "swap", report: str | None = "swap/report.html") -> Column:
    found = {arm: Figures([level] * 3, False, 1e6, None, None) for arm, level in LEVELS.items()}
    rows = {**{arm: arm for arm in LEVELS}, "gone": "gone"}
    return Column(name, report, {}, [0, 1, 2], [100], "avg", rows, ["oracle"], found)


def test_the_heat_map_is_darker_the_further_below_the_best_and_has_number_and_word() -> None:
    """A point, 2.5, 5, 8 and 20 points below the best; oracles and missing cells have no shade."""
    page = render_atlas("runs", [column()])
    cells = re.findall(r'<tr><th scope="row">(\w+)</th><td(?: class="(shade-\d)")?>([\d.-]+)', page)
    assert cells == [
        ("best", "shade-0", "60.0"),
        ("avg", "shade-0", "59.0"),
        ("near", "shade-1", "57.5"),
        ("far", "shade-2", "55.0"),
        ("worse", "shade-3", "52.0"),
        ("worst", "shade-4", "40.0"),
        ("gone", "", "-"),
        ("oracle", "", "90.0"),
    ]
    assert '<span class="interval">ahead</span><span class="interval">+1.0 [+1.0, +1.0]</span>' in page


def luminance(colour: str) -> float:
    """The relative luminance of #rrggbb, by the definition of WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_shades_are_greys_that_print_and_on_each_the_ink_is_readable() -> None:
    page = render_atlas("runs", [column()])
    (ink,) = re.findall(r'\[class\^="shade-"\] \{ color: (#\w{6}); print-color-adjust: exact', page)
    shades = re.findall(r"\.shade-\d \{ background: #(\w\w)(\w\w)(\w\w); \}", page)
    assert len(shades) == 5
    assert all(red == green == blue for red, green, blue in shades)
    levels = [luminance(f"#{''.join(shade)}") for shade in shades]
    assert levels == sorted(levels, reverse=True)
    assert all((level + 0.05) / (luminance(ink) + 0.05) > 4.5 for level in levels)


def test_a_drift_links_to_its_report_if_there_is_one_and_the_page_fetches_nothing() -> None:
    page = render_atlas("runs", [column(), column("mass", None)])
    assert re.findall(r'<a href="([^"]*)">(\w+)</a>', page) == [("swap/report.html", "swap")]
    assert "src=" not in page
    assert render_atlas("runs", [column(), column("mass", None)]) == page


@pytest.mark.parametrize("name", [*HOSTILE.values(), "</script>"])
def test_names_from_outside_stay_text(name: str) -> None:
    page, plain = (
        Shape(render_atlas(of, [replace(column(), name=of, report=f"{of}/report.html")]))
        for of in (name, "swap")
    )
    assert page.elements == plain.elements
    assert name in page.text
    assert page.comments == 0


def test_markdown_has_each_table_with_its_notes_and_a_bar_in_a_name_breaks_none() -> None:
    text = as_markdown("runs", atlas_tables([replace(column(), name="a|b")]))
    assert text.startswith("# runs\n\n## Mean accuracy of the best use (%), beside the rival\n\n")
    assert "| method | a\\|b |\n| --- | --- |\n| best | 60.0, ahead, +1.0 [+1.0, +1.0] |" in text
    assert "nothing is tested over them" in text
