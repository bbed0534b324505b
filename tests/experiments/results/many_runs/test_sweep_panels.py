"""The layout of sweeps as small multiples."""

import itertools
from pathlib import Path
from typing import Any

from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.many_runs.sweep_panels import sweep_layout
from experiments.results.reading.json_files import Manifest, SweepCell
from experiments.results.reading.run_directory import RunDirectory


def a_cell(order: dict[str, list[Any]] | None = None, **values: Any) -> MeasuredDirectory:
    """A cell of these values, whose keys are those of `[round]`, and whose name lists the values."""
    swept = {f"round.{key}": value for key, value in values.items()}
    name = " ".join(map(str, values.values()))
    manifest = Manifest(sweep=SweepCell(of="sweep", keys=swept, order=order or {}))
    return MeasuredDirectory(name, RunDirectory(Path(name)), {"arm": [{"name": "global"}]}, manifest, [])


def test_the_first_key_is_the_axis_and_a_panel_has_each_combination_of_the_others():
    cells = [
        a_cell(share=share, mixes=mixes, hear=hear)
        for share, mixes, hear in itertools.product([0.9, 0.1], [8, 2], ["online", "everyone"])
    ]
    layout = sweep_layout(cells)
    assert (layout.key, layout.values, layout.others) == ("share", ["0.1", "0.9"], ["mixes", "hear"])
    assert [title for title, _ in layout.panels] == [
        "mixes 2, hear everyone",
        "mixes 2, hear online",
        "mixes 8, hear everyone",
        "mixes 8, hear online",
    ]
    assert layout.panels[1][1] == {0: "0.1 2 online", 1: "0.9 2 online"}


def test_numbers_are_ordered_by_value_and_other_values_by_text_after_them():
    layout = sweep_layout([a_cell(bound=value) for value in ("none", 10, 9.0, True, 0.5)])
    assert layout.values == ["0.5", "9", "10", "none", "yes"]


def test_values_are_in_the_order_given_on_the_axis_and_among_the_panels():
    order = {"round.share": [0.9, 0.1], "round.hear": ["online", "everyone"]}
    cells = [
        a_cell(share=share, hear=hear, order=order)
        for hear, share in itertools.product(["everyone", "online"], [0.1, 0.9])
    ]
    earlier = [a_cell(share=share, hear="check_in") for share in (0.1, 0.5)]
    layout = sweep_layout([*earlier, *cells])
    assert layout.values == ["0.9", "0.1", "0.5"]
    assert [title for title, _ in layout.panels] == ["hear online", "hear everyone", "hear check_in"]
    assert layout.panels[0][1] == {0: "0.9 online", 1: "0.1 online"}


def test_a_number_that_is_swept_later_has_its_place_among_ascending_ones():
    cells = [a_cell(share=share, order={"round.share": [0.1, 0.5]}) for share in (0.1, 0.5)]
    later = a_cell(share=0.2, order={"round.share": [0.2]})
    assert sweep_layout([*cells, later]).values == ["0.1", "0.2", "0.5"]


def test_a_number_is_the_same_value_with_and_without_a_point():
    layout = sweep_layout([a_cell(share=1, mixes=2), a_cell(share=1.0, mixes=4), a_cell(share=2, mixes=2)])
    assert layout.values == ["1", "2"]
    assert [members for _, members in layout.panels] == [{0: "1 2", 1: "2 2"}, {0: "1.0 4"}]


def test_a_key_with_one_value_is_neither_the_axis_nor_in_a_title():
    layout = sweep_layout([a_cell(share=0.5, mixes=mixes, seeds=3) for mixes in (2, 4)])
    assert (layout.key, layout.others, layout.columns) == ("mixes", [], 1)
    assert [title for title, _ in layout.panels] == [""]
    assert sweep_layout([a_cell(share=0.5)]).values == ["0.5"]


def test_lists_and_tables_are_values_too_and_long_ones_are_cut():
    models = [{"kind": "mlp", "hidden": [32, 32, 32, 32, 32]}, {"kind": "linear"}]
    layout = sweep_layout([a_cell(model=model) for model in models])
    assert layout.values == ["linear", "mlp (hidden 32, 32, 32,…"]


def test_the_columns_line_up_with_the_values_of_the_last_key():
    cells = [a_cell(a=a, b=b, c=c) for a, b, c in itertools.product([1, 2], range(9), ["x", "y"])]
    layout = sweep_layout(cells)
    assert (len(layout.panels), layout.columns) == (18, 6)


def test_a_cell_of_an_earlier_sweep_without_a_key_stands_apart():
    layout = sweep_layout([a_cell(share=0.1), a_cell(share=0.5), a_cell(share=0.1, mixes=2)])
    assert [title for title, _ in layout.panels] == ["mixes 2", "mixes not swept"]
