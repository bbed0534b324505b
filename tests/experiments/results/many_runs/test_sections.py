import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.many_runs.directories import KnownRuns, MeasuredDirectory, reduced
from experiments.results.many_runs.sections import Section, compare, in_order, sections
from experiments.results.reading.json_files import Manifest
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_run, store

Accuracies = dict[str, dict[int, Sequence[float]]]
"""By arm and seed, the accuracy at the end of each round of ten seconds."""

WORLD = {"trace": "t", "fleet": "f", "availability": "a"}


def a_measured(
    path: Path,
    accuracies: Accuracies,
    *,
    worlds: dict[int, dict[str, str]] | None = None,
    swept: dict[str, Any] | None = None,
    sweep: str = "sweep",
    order: dict[str, list[Any]] | None = None,
    report: dict[str, Any] | None = None,
    **changes: Any,
) -> MeasuredDirectory:
    """A directory with these runs; the worlds of its seeds are `WORLD` but for `worlds`.

    With a trace, its settings stand for its hash. `order` is that of the values of a sweep.
    """
    seeds = sorted({seed for by_seed in accuracies.values() for seed in by_seed})
    trace = changes.get("trace")
    directory = a_directory(path, list(accuracies), seeds, report={"window": 1, **(report or {})}, **changes)
    world = WORLD if trace is None else {**WORLD, "trace": repr(trace)}
    hashes = {str(seed): (worlds or {}).get(seed, world) for seed in seeds}
    origin = {} if swept is None else {"sweep": {"of": sweep, "keys": swept, "order": order or {}}}
    directory.manifest_path.write_text(json.dumps({"sha256": hashes, **origin}))
    for arm, by_seed in accuracies.items():
        for seed, values in by_seed.items():
            store(directory, a_run(arm, seed, values))
    return MeasuredDirectory.read(directory, path.name)


def constant(*values: float, rounds: int = 3) -> dict[int, Sequence[float]]:
    """Runs of seeds 0, 1, ... with a constant accuracy each."""
    return {seed: [value] * rounds for seed, value in enumerate(values)}


ONE = constant(0.5, 0.6, 0.7)
OTHER = constant(0.52, 0.64, 0.76)
"""0.02, 0.04 and 0.06 above `ONE`."""

HALF = 4.302653 * 2 / math.sqrt(3)
"""Half the 95 % interval of the mean of 2, 4 and 6: t(0.975, 2) = 4.302653, standard deviation 2."""

P = 1 - math.sqrt(12 / 14)
"""The p-value of these: t = 2 sqrt(3), and with two degrees of freedom p = 1 - t / sqrt(t^2 + 2)."""


def test_two_directories_are_compared_by_hand(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": OTHER}, round={"participants": 40})

    first, second = compare([a, b]).rows

    assert first.mean_accuracy.mean == pytest.approx(0.6)
    assert first.difference_pp is None
    assert second.difference_pp is not None
    assert second.difference_pp.mean == pytest.approx(4)
    assert second.difference_pp.ci95 == pytest.approx((4 - HALF, 4 + HALF), abs=1e-4)
    assert second.difference_pp.p == second.difference_pp.p_holm == pytest.approx(P)
    assert second.difference_pp.pairing == "seed"


def test_gains_are_over_the_reference_arm_of_the_same_directory_and_corrected_over_the_column(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER})
    b = a_measured(
        tmp_path / "b",
        {"global": constant(0.4, 0.4, 0.4), "fielding": constant(0.5, 0.6, 0.7)},
        round={"participants": 40},
    )

    gains = [row.gain_pp for row in compare([a, b]).rows]

    assert gains[0] is gains[2] is None
    assert gains[1] is not None
    assert gains[3] is not None
    assert gains[1].ci95 == pytest.approx((4 - HALF, 4 + HALF), abs=1e-4)
    # Gains 10, 20, 30: t = 2 sqrt(3) again, so both p are `P`, and Holm doubles them.
    assert gains[3].mean == pytest.approx(20)
    assert [gain.p for gain in (gains[1], gains[3])] == pytest.approx([P, P])
    assert [gain.p_holm for gain in (gains[1], gains[3])] == pytest.approx([2 * P, 2 * P])


def test_an_arm_that_the_first_directory_lacks_is_compared_with_its_reference_arm(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"fielding": OTHER})
    difference = compare([a, b]).rows[1].difference_pp
    assert difference is not None
    assert difference.mean == pytest.approx(4)
    assert compare([a, b]).rows[1].base_arm == "global"


@pytest.mark.parametrize("part", ["trace", "fleet", "availability"])
def test_seeds_with_other_worlds_are_not_paired(tmp_path, part):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": OTHER}, worlds={1: {**WORLD, part: "another"}})
    difference = compare([a, b]).rows[1].difference_pp
    assert difference is not None
    assert difference.pairing == "none"
    assert difference.mean == pytest.approx(4)
    # Welch: variances 0.01 and 0.0144, so the interval is far wider than the paired one.
    assert difference.ci95 is not None
    assert difference.ci95[1] - difference.ci95[0] > 4 * HALF


def test_seeds_whose_worlds_are_unknown_are_not_paired(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": OTHER})
    b.manifest.sha256.pop("2")
    assert compare([a, b]).rows[1].difference_pp.pairing == "none"


def test_directories_without_a_seed_in_common_are_not_paired(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": {seed + 3: values for seed, values in OTHER.items()}})
    difference = compare([a, b]).rows[1].difference_pp
    assert difference is not None
    assert (difference.pairing, difference.per_seed) == ("none", [])
    assert difference.mean == pytest.approx(4)


def test_seeds_that_only_one_directory_has_are_left_out_of_a_paired_difference(tmp_path):
    a = a_measured(tmp_path / "a", {"global": {**ONE, 3: [0.9] * 3}})
    b = a_measured(tmp_path / "b", {"global": OTHER})
    difference = compare([a, b]).rows[1].difference_pp
    assert difference is not None
    assert difference.per_seed == pytest.approx([2, 4, 6])


def test_a_swept_key_of_the_trace_pairs_by_the_number_of_the_seed(tmp_path):
    cells = [
        a_measured(
            tmp_path / name,
            {"global": accuracies},
            trace={"source": "digits", "noise": noise},
            swept={"trace.noise": noise},
            worlds={seed: {**WORLD, "trace": f"{noise} {seed}"} for seed in range(3)},
        )
        for name, noise, accuracies in (("a", 0.5, ONE), ("b", 1.0, OTHER))
    ]
    section = compare(cells)
    difference = section.rows[1].difference_pp
    assert difference is not None
    assert difference.pairing == "seed, other trace"
    assert difference.per_seed == pytest.approx([2, 4, 6])
    assert section.paths == [("trace", "noise")]


def test_cells_of_a_sweep_over_the_trace_are_paired_by_seed_where_their_traces_are_the_same(tmp_path):
    cells = [
        a_measured(
            tmp_path / f"{clients} {number}",
            {"global": constant(0.5 + number / 100, clients / 100, 0.7)},
            trace={"clients": clients},
            round={"participants": number},
            swept={"trace.clients": clients, "round.participants": number},
        )
        for clients in (60, 80)
        for number in (5, 10)
    ]
    pairings = [row.difference_pp and row.difference_pp.pairing for row in compare(cells).rows]
    assert pairings == [None, "seed", "seed, other trace", "seed, other trace"]


def test_another_trace_and_other_devices_are_not_paired(tmp_path):
    cells = [
        a_measured(
            tmp_path / profile,
            {"global": accuracies},
            trace={"noise": noise},
            devices={"profile": profile},
            swept={"trace.noise": noise, "devices.profile": profile},
        )
        for noise, profile, accuracies in ((0.5, "iot", ONE), (1.0, "smartphones", OTHER))
    ]
    assert compare(cells).rows[1].difference_pp.pairing == "none"


def test_the_same_trace_by_its_hashes_is_the_same_whatever_the_configurations_say(tmp_path):
    worlds = dict.fromkeys(range(3), WORLD)
    a = a_measured(tmp_path / "a", {"global": ONE}, trace={"source": "digits"}, worlds=worlds)
    b = a_measured(
        tmp_path / "b", {"global": OTHER}, trace={"source": "digits", "new": 0}, worlds=worlds, swept={}
    )
    assert compare([a, b]).rows[1].difference_pp.pairing == "seed"


def test_a_world_is_known_only_if_all_its_parts_are(tmp_path):
    worlds = {seed: {"trace": "t"} for seed in range(3)}
    a = a_measured(tmp_path / "a", {"global": ONE}, worlds=worlds)
    b = a_measured(tmp_path / "b", {"global": OTHER}, worlds=worlds)
    assert compare([a, b]).rows[1].difference_pp.pairing == "none"


def test_data_steps_are_those_of_each_row(tmp_path):
    # A data step has ten rounds.
    a = a_measured(tmp_path / "a", {"global": {0: [0.5] * 30}})
    slow = a_directory(tmp_path / "b", ["global"], [0], report={"window": 1}, round={"participants": 5})
    store(slow, a_run("global", 0, [0.5] * 30, step=0))
    section = compare([a, MeasuredDirectory.read(slow, "b")])
    assert section.horizon.steps == {"a: global": 3, "b: global": 1}
    assert "arms reach between 1 and 3 data steps" in " ".join(section.horizon.warnings())


def test_an_arm_that_starts_from_a_file_beside_one_that_does_not_is_named(tmp_path):
    cold = a_measured(tmp_path / "a", {"global": ONE})
    warm = a_measured(tmp_path / "b", {"warm": OTHER}, training={"start": {"file": "a.safetensors"}})
    note = "warm starts from a.safetensors: what trained it is not in its time and bytes"
    assert note in compare([cold, warm]).notes


def test_other_traces_are_refused_with_the_key(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE}, trace={"source": "digits", "noise": 0.5})
    b = a_measured(tmp_path / "b", {"global": ONE}, trace={"source": "digits", "noise": 1.0})
    with pytest.raises(InputError, match=r"a and b have other traces \(trace\.noise 0\.5 and 1\.0\)"):
        compare([a, b])
    assert [section.name for section in sections([a, b])] == ["a", "b"]


def test_horizons_that_do_not_overlap_are_refused(tmp_path):
    # a ends at 30 s; b is first evaluated at 50 s.
    a = a_measured(tmp_path / "a", {"global": ONE})
    late = {seed: [None] * 4 + list(values) for seed, values in OTHER.items()}
    b = a_measured(tmp_path / "b", {"global": late}, round={"participants": 40})
    with pytest.raises(InputError, match=r"b is evaluated from 50\.0 s .* a is compared up to 30\.0 s"):
        compare([a, b])
    alone = sections([a, b])
    assert [section.directories for section in alone] == [["a"], ["b"]]
    assert all("horizons do not overlap" in section.notes[0] for section in alone)
    assert all(row.difference_pp is None for section in alone for row in section.rows)


def test_all_rows_are_measured_over_the_stretch_that_all_runs_have(tmp_path):
    # Only a has the fourth round, at 0.9; b is evaluated from its second round on.
    a = a_measured(tmp_path / "a", {"global": {0: [0.1, 0.5, 0.5, 0.9]}})
    b = a_measured(tmp_path / "b", {"global": {0: [None, 0.5, 0.7]}}, round={"participants": 40})
    section = compare([a, b])
    assert (section.horizon.start_s, section.horizon.horizon_s) == (20, 30)
    assert section.horizon.set_by == ("b: global", 0)
    assert [row.mean_accuracy.mean for row in section.rows] == pytest.approx([0.5, 0.5])
    assert [row.total_bytes.mean for row in section.rows] == [3 * 716, 3 * 716]


def test_the_earliest_horizon_that_is_set_counts(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE}, report={"horizon_s": 25.0})
    b = a_measured(tmp_path / "b", {"global": ONE}, report={"horizon_s": 28.0})
    horizon = compare([a, b]).horizon
    assert (horizon.horizon_s, horizon.set_by) == (25, None)


def test_a_paired_difference_names_its_seeds(tmp_path):
    a = a_measured(tmp_path / "a", {"global": {**ONE, 3: [0.9] * 3}})
    b = a_measured(tmp_path / "b", {"global": OTHER})
    difference = compare([a, b]).rows[1].difference_pp
    assert difference is not None
    assert difference.as_json()["seed_ids"] == [0, 1, 2]


def test_results_of_further_seeds_are_not_identical(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": {**ONE, 3: [0.9] * 3}})
    row = compare([a, b]).rows[1]
    assert row.identical_to is None
    assert row.difference_pp is not None
    assert (row.difference_pp.pairing, row.difference_pp.mean) == ("seed", 0)


def test_identical_results_are_identical_without_a_recorded_world(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": ONE}, round={"participants": 40})
    b.manifest.sha256.clear()
    row = compare([a, b]).rows[1]
    assert row.identical_to == 0
    assert row.difference_pp is not None
    assert row.difference_pp.pairing == "identical"


def test_without_an_evaluation_up_to_the_horizon_nothing_is_identical(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER}, report={"horizon_s": 5.0})
    (section,) = sections([a])
    assert [row.identical_to for row in section.rows] == [None, None]
    assert section.rows[1].gain_pp is not None
    assert section.rows[1].gain_pp.pairing == "seed"
    assert section.rows[1].gain_pp.mean is None


def test_an_arm_that_the_first_directory_has_not_finished_has_no_difference(tmp_path):
    arms = [{"name": "global"}, {"name": "fielding"}]
    a = a_measured(tmp_path / "a", {"global": ONE}, arm=arms)
    b = a_measured(tmp_path / "b", {"global": OTHER, "fielding": OTHER}, arm=arms)
    rows = {(row.directories[0], row.arm): row for row in compare([a, b]).rows}
    assert rows["b", "fielding"].difference_pp is None
    assert rows["b", "global"].difference_pp is not None


def test_identical_results_are_called_identical(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER})
    b = a_measured(tmp_path / "b", {"global": ONE, "fielding": OTHER}, round={"participants": 40})
    rows = compare([a, b]).rows
    assert [row.identical_to for row in rows] == [None, None, 0, 1]
    for row in rows[2:]:
        assert row.difference_pp is not None
        assert (row.difference_pp.pairing, row.difference_pp.p) == ("identical", None)
    assert rows[1].gain_pp is not None
    assert rows[1].gain_pp.pairing == "seed"


def test_results_that_differ_in_one_evaluation_are_not_identical(tmp_path):
    a = a_measured(tmp_path / "a", {"global": {0: [0.5, 0.6, 0.5]}})
    b = a_measured(tmp_path / "b", {"global": {0: [0.5, 0.5, 0.6]}}, round={"participants": 40})
    assert compare([a, b]).rows[1].identical_to is None


def test_an_arm_with_a_trigger_has_no_test(tmp_path):
    cells = [
        a_measured(
            tmp_path / f"{number}", {"global": ONE, "triggered": other}, round={"participants": number}
        )
        for number, other in ((5, ONE), (10, OTHER))
    ]
    *_, row = compare(cells).rows
    assert row.comparison.has_trigger
    for difference in (row.gain_pp, row.difference_pp):
        assert (difference.ci95, difference.p, difference.p_holm) == (None, None, None)
        assert difference.per_seed == pytest.approx([2.0, 4.0, 6.0])
    assert (row.mean_accuracy.ci95, row.total_bytes.ci95) == (None, None)
    assert row["reclustered_seeds"].ci95 == pytest.approx((0.0, 1 - 0.025 ** (1 / 3)))


def test_runs_that_directories_share_are_one_row(tmp_path):
    arms = [{"name": "global", "clusterer": {"kind": "single"}}, {"name": "fielding", "clusterer": {}}]
    cells = [
        a_measured(
            tmp_path / str(threshold),
            {"global": ONE, "fielding": OTHER},
            arm=[arms[0], {**arms[1], "clusterer": {"kind": "cfl", "threshold": threshold}}],
        )
        for threshold in (0.1, 0.5)
    ]
    section = compare(cells)
    assert [(row.arm, row.keys, row.directories) for row in section.rows] == [
        ("global", [None], ["0.1", "0.5"]),
        ("fielding", [0.1], ["0.1"]),
        ("fielding", [0.5], ["0.5"]),
    ]
    # Both gains are the same results: one test.
    assert [row.gain_pp.p_holm for row in section.rows if row.gain_pp] == pytest.approx([P, P])


def test_equal_configurations_with_other_results_keep_their_rows(tmp_path):
    # Another machine may round otherwise.
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": OTHER})
    assert [row.directories for row in compare([a, b]).rows] == [["a"], ["b"]]


def test_a_reference_arm_of_its_own_keeps_the_rows_of_shared_runs_apart(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER})
    reference = [{"name": "global", "clusterer": {"kind": "static"}}, {"name": "fielding"}]
    b = a_measured(tmp_path / "b", {"global": OTHER, "fielding": OTHER}, arm=reference)
    assert [row.arm for row in compare([a, b]).rows] == ["global", "fielding", "global", "fielding"]


def test_a_run_that_is_smoothed_as_in_another_directory_is_so_after_an_event_too(tmp_path):
    other = a_measured(tmp_path / "a", {"global": {0: [0.1] * 4}}, report={"window": 2})
    a = a_measured(tmp_path / "b", {"global": {0: [0.1, 0.2, 0.4, 0.8]}}, round={"participants": 40})
    (run,) = compare([other, a]).rows[1].runs
    assert run.curve.after(10.0).smoothed.tolist() == [0.2, pytest.approx(0.3), pytest.approx(0.6)]


def test_times_to_the_targets_of_all_directories_are_in_every_row(tmp_path):
    a = a_measured(
        tmp_path / "a",
        {"global": {0: [0.1, 0.2, 0.6]}, "fielding": {0: [0.1, 0.6, 0.6]}},
        report={"targets": [0.5]},
    )
    b = a_measured(tmp_path / "b", {"global": {0: [0.1, 0.2, 0.3]}}, report={"targets": [0.9]})
    section = compare([a, b])
    assert section.targets == [0.5, 0.9]
    held = [[(times["held"], times["seeds"]) for times in row.targets] for row in section.rows]
    assert held == [[(1, 1), (0, 1)], [(1, 1), (0, 1)], [(0, 1), (0, 1)]]
    assert section.rows[1].targets[0]["held_from_s"].median.low == 20
    assert section.rows[1].targets[0]["speedup"].median.low == 1.5


def test_accuracy_is_smoothed_as_in_the_first_directory_and_a_note_states_it(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE}, report={"window": 2})
    b = a_measured(tmp_path / "b", {"global": {0: [0.1, 0.2, 0.9]}}, report={"window": 1, "targets": [0.8]})
    section = compare([a, b])
    assert section.window == 2
    assert section.rows[1].targets[0]["held"] == 0  # the mean of 0.2 and 0.9 is below
    assert section.notes == ["accuracy is smoothed over 2 evaluations, as in a"]


def test_directories_of_a_folder_make_a_section_for_each_trace(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE}, round={"participants": 10})
    b = a_measured(tmp_path / "b", {"global": OTHER}, trace={"source": "mnist"})
    c = a_measured(tmp_path / "c", {"global": OTHER}, round={"participants": 5})
    assert [section.directories for section in sections([a, b, c])] == [["c", "a"], ["b"]]


def test_sweeps_have_sections_of_their_own(tmp_path):
    cells = [
        a_measured(tmp_path / name, {"global": ONE}, swept={"round.participants": 1}, sweep=name[0])
        for name in ("x1", "x2", "y1")
    ]
    assert [section.name for section in sections(cells)] == ["x", "y"]


def test_directories_are_in_the_order_of_their_keys(tmp_path):
    cells = [
        a_measured(tmp_path / f"{number}", {"global": ONE}, round={"participants": number})
        for number in (10, 5, 100)
    ]
    assert [directory.name for directory in in_order(cells)] == ["5", "10", "100"]


def cells_of(tmp_path: Path, orders: dict[str, list[str]]) -> list[MeasuredDirectory]:
    """Cells of a sweep of `round.hear`, each with its value for a name and an order."""
    return [
        a_measured(
            tmp_path / value,
            {"global": {0: [0.5, 0.5]}},
            round={"hear": value},
            swept={"round.hear": value},
            order={"round.hear": order} if order else None,
        )
        for value, order in orders.items()
    ]


def test_cells_are_in_the_order_in_which_their_values_were_given(tmp_path):
    given = ["online", "check_in", "everyone"]
    section = compare(in_order(cells_of(tmp_path, dict.fromkeys(sorted(given), given))))
    assert section.directories == given
    assert [row.keys for row in section.rows] == [[value] for value in given]
    assert section.members[0].cell.order == {"round.hear": given}


def test_values_that_no_cell_has_on_record_come_last_and_sorted(tmp_path):
    given, all_given = ["online", "check_in"], ["online", "nobody", "check_in"]
    cells = cells_of(
        tmp_path, {"all": [], "check_in": given, "any": [], "online": given, "nobody": all_given}
    )
    assert [cell.name for cell in in_order(cells)] == [*all_given, "all", "any"]


def test_cells_without_an_order_on_record_are_sorted(tmp_path):
    cells = cells_of(tmp_path, {value: [] for value in ("online", "check_in", "everyone")})
    assert [cell.name for cell in in_order(cells)] == ["check_in", "everyone", "online"]


def test_cells_of_whole_tables_and_their_settings_are_in_the_order_given(tmp_path):
    # The second key lies in the first one; the arm global has a threshold of its own, which is not swept.
    kinds, thresholds = ["static", "fielding"], [0.5, 0.1]
    part = "arm.fielding.clusterer"
    cells = [
        a_measured(
            tmp_path / f"{kind} {threshold}",
            {"global": {0: [0.5]}, "fielding": {0: [0.5]}},
            arm=[
                {"name": "global", "clusterer": {"kind": "single", "threshold": 0.3}},
                {"name": "fielding", "clusterer": {"kind": kind, "threshold": threshold}},
            ],
            swept={part: kind, f"{part}.threshold": threshold},
            order={part: kinds, f"{part}.threshold": thresholds},
        )
        for threshold in sorted(thresholds)
        for kind in sorted(kinds)
    ]
    assert [cell.name for cell in in_order(cells)] == [
        "static 0.5",
        "static 0.1",
        "fielding 0.5",
        "fielding 0.1",
    ]


def test_a_directory_whose_reference_arm_has_not_finished_is_left_out_of_a_folder(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    directory = a_directory(tmp_path / "b", ["global", "fielding"], [0])
    store(directory, a_run("fielding", 0, [0.5]))
    b = MeasuredDirectory.read(directory, "b")
    assert [section.directories for section in sections([a, b])] == [["a"]]
    with pytest.raises(InputError, match="b: its reference arm 'global' has no finished run"):
        compare([a, b])


def test_accuracies_with_drift_cells_stand_beside_published_values(tmp_path):
    directory = a_directory(
        tmp_path / "sine",
        ["oblivious"],
        [0],
        report={"window": 1, "published": {"accuracy_omitting_drift": {"oblivious": [60.0]}}},
    )
    store(directory, a_drifting_run("oblivious", 0, [0.5, 0.75], [[0, 0], [0, 0]]))
    (section,) = sections([MeasuredDirectory.read(directory, "sine")])
    cell = section.rows[0].drift["accuracy_omitting_drift"]
    assert cell is not None
    assert (cell["mean"], cell["difference"]) == (62.5, 2.5)


def test_accuracies_with_drift_cells_are_of_the_seeds_of_the_row(tmp_path):
    directory = a_directory(tmp_path / "sine", ["oblivious", "oracle"], [0, 1], report={"window": 1})
    store(directory, a_drifting_run("oblivious", 0, [0.5, 0.75], [[0, 0], [0, 0]]))
    for seed in (0, 1):
        store(directory, a_drifting_run("oracle", seed, [1.0, seed], [[0, 0], [0, 0]]))
    (section,) = sections([MeasuredDirectory.read(directory, "sine")])
    cell = section.rows[1].drift["accuracy_omitting_drift"]
    assert cell is not None
    assert (cell["mean"], cell["seeds"]) == (50.0, 1)


def test_copies_of_a_log_are_parsed_once(tmp_path, monkeypatch):
    read = []
    parse = RunDirectory.read_run
    monkeypatch.setattr(RunDirectory, "read_run", lambda *run: read.append(run[1:]) or parse(*run))
    known: KnownRuns = {}
    for name, accuracies in (("a", ONE), ("b", ONE), ("c", OTHER)):
        a_measured(tmp_path / name, {"global": accuracies})
    read.clear()
    for name in ("a", "b", "c"):
        MeasuredDirectory.read(RunDirectory(tmp_path / name), name, known)
    assert read == [("global", seed) for seed in (0, 1, 2)] * 2


def test_a_section_can_be_written_as_json(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER}, report={"targets": [0.5]})
    b = a_measured(tmp_path / "b", {"global": OTHER}, round={"participants": 40})
    content = compare([a, b]).as_json()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["keys"][0] == "round.participants"


DRAWS = 500


def equal_arms(
    generator: np.random.Generator, arms: Sequence[str], seeds: int, name: str
) -> MeasuredDirectory:
    """Arms whose accuracies have one distribution: a world of each seed, and noise of each run."""
    worlds = np.random.default_rng(seeds).normal(0.6, 0.03, seeds)
    runs = []
    for arm in arms:
        for seed in range(seeds):
            accuracy = float(worlds[seed] + generator.normal(0, 0.01))
            runs.append(reduced(a_run(arm, seed, [accuracy, accuracy]), None, 1))
    experiment = {
        "report": {"window": 1},
        "arm": [{"name": arm} for arm in arms],
        "trace": {},
        "round": {"participants": name},
    }
    manifest = Manifest(sha256={str(seed): WORLD for seed in range(seeds)})
    return MeasuredDirectory(name, RunDirectory(Path(name)), experiment, manifest, runs)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, pytest.param(5, marks=pytest.mark.sweep)])
def test_equal_arms_of_equal_directories_differ_in_at_most_the_nominal_share_of_tables(seeds):
    generator = np.random.default_rng(seeds)
    arms = ["global", "a", "b", "c"]

    def a_table() -> Section:
        return compare([equal_arms(generator, arms, seeds, name) for name in ("one", "two")])

    found = {"gain_pp": 0, "difference_pp": 0}
    for _ in range(DRAWS):
        rows = a_table().rows
        for column in found:
            tests = [getattr(row, column) for row in rows]
            found[column] += any(test is not None and test.p_holm < 0.05 for test in tests)
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)
    assert found["gain_pp"] / DRAWS <= most
    assert found["difference_pp"] / DRAWS <= most
