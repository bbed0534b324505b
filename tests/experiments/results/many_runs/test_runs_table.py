from dataclasses import replace

import numpy as np
import pytest

from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.many_runs.runs_table import runs_horizon, runs_notes, runs_table, runs_warnings
from experiments.results.many_runs.sections import compare, sections
from experiments.results.tables.clusterings import CLIENT_DISTANCE_NOTE, GLOBAL_RECLUSTERINGS_NOTE
from tests.experiments.results.many_runs.test_sections import ONE, OTHER, WORLD, a_measured, constant
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_record, a_run, store


@pytest.fixture
def section(tmp_path):
    """Two directories of two arms; the second one's global is 4 pp above the first one's."""
    a = a_measured(
        tmp_path / "a",
        {"global": ONE, "fielding": OTHER},
        round={"participants": 5},
        report={"targets": [0.55]},
    )
    b = a_measured(tmp_path / "b", {"global": OTHER, "fielding": OTHER}, round={"participants": 10})
    return compare([a, b])


def column(table, heading):
    index = table.headings.index(heading)
    return [cells[index] for _, cells in table.rows]


def test_columns_are_the_differing_keys_then_figures(section):
    table = runs_table(section)
    assert [heading.replace("\u00a0", " ") for heading in table.headings] == [
        "row",
        "participants",
        "mean accuracy",
        "gain",
        "difference",
        "identical to",
        "client distance",
        "55 %: held from",
        "55 %: speed-up",
        "55 %: held",
        "bytes sent",
    ]
    assert table.num_keys == 2
    assert [arm for arm, _ in table.rows] == ["global", "fielding", "global", "fielding"]
    assert [cell.figure for cell in column(table, "participants")] == ["5", "5", "10", "10"]


def test_a_gain_has_its_interval_and_corrected_p(section):
    # Two gains: that of b is of identical arms and has no test, so the other p is its own.
    reference, gain, _, same = column(runs_table(section), "gain")
    assert reference.figure == "reference"
    assert gain.lines == ["+4.0 pp", "[-1.0, +9.0]", "p 0.074"]
    assert same.lines == ["identical"]


def test_a_difference_is_from_the_first_directory(section):
    cells = column(runs_table(section), "difference")
    assert [cell.figure for cell in cells] == ["reference", "reference", "+4.0 pp", "identical"]
    assert [cell.figure for cell in column(runs_table(section), "identical to")] == [
        "-",
        "-",
        "row 2",
        "row 2",
    ]


def test_the_notes_state_correction_pairing_and_what_has_no_test(section):
    notes = " ".join(runs_notes(section))
    assert "Gain is over global of the same run directory, paired by seed." in notes
    assert "paired by seed. p is the p-value of a t test. Mean accuracy" in notes
    assert (
        "from the same arm of the first run directory, a, in whose rows it is marked reference. It" in notes
    )
    assert "Mean over 3 seeds (0, 1, 2), with" in notes
    assert "order statistics at 75.0 % and without a test" in notes
    assert "trace, fleet and availability of each seed are the same" in notes
    assert "Identical: every evaluation of every seed up to the horizon is the same." in notes
    assert "without a test" in notes


def test_several_tests_are_corrected_and_counted(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE, "fielding": OTHER, "static": constant(0.5, 0.5, 0.8)})
    (section,) = sections([a])
    assert "corrected by Holm over all 2 tests of the column" in runs_notes(section)[0]
    assert column(runs_table(section), "gain")[1].note == "p 0.148"


def test_a_section_of_one_directory_has_no_difference(tmp_path):
    (section,) = sections([a_measured(tmp_path / "a", {"global": ONE, "fielding": constant(0.9, 0.8, 0.7)})])
    table = runs_table(section)
    assert table.headings == ["mean accuracy", "gain", "client distance", "bytes sent"]
    assert table.num_keys == 0
    assert runs_notes(section)[1:] == [CLIENT_DISTANCE_NOTE]
    assert runs_table(section, in_terminal=True).headings == ["mean accuracy", "gain", "bytes sent"]
    assert len(runs_notes(section, in_terminal=True)) == 1


def test_rows_in_which_offline_clients_are_heard_are_marked_by_their_logs(tmp_path):
    measured = []
    for hear in ("online", "everyone"):
        directory = a_directory(tmp_path / hear, ["global", "fielding"], [0], round={"hear": hear})
        for arm, changed in (("global", 0), ("fielding", 2)):
            store(directory, replace(a_run(arm, 0, [0.25, 0.5], changed=changed), header={"hear": hear}))
        measured.append(MeasuredDirectory.read(directory, hear))
    section = compare(measured)
    table = runs_table(section)
    assert [cell.figure for cell in column(table, "hear")] == ["online", "online", "everyone", "everyone"]
    assert [cell.figure for cell in column(table, "offline clients")] == ["-", "-", "-", "heard"]
    assert "Offline clients heard: in rows of fielding. " in " ".join(runs_notes(section))
    marks = [row.as_json(section.paths)["offline_clients_heard"] for row in section.rows]
    assert marks == [False, False, False, True]
    assert "offline clients" not in runs_table(*sections(measured[:1])).headings


def test_samples_trained_have_a_column_where_logs_have_the_size_of_a_model(tmp_path):
    directory = a_directory(tmp_path / "known", ["global"], [0])  # 20 local steps with 20 samples each
    run = replace(a_run("global", 0, [0.5, 0.5]), header={"num_parameters": 25})
    store(directory, run)  # each round, four clients upload three models of 100 bytes
    (section,) = sections([MeasuredDirectory.read(directory, "known")])
    assert [cell.figure for cell in column(runs_table(section), "samples trained per client")] == ["600"]
    assert "Samples trained per client count models uploaded" in " ".join(runs_notes(section))


def test_agreement_with_concepts_and_honest_clients_have_columns_where_they_are_known(tmp_path):
    directory = a_directory(tmp_path / "known", ["global", "oracle"], [0])
    for arm, accuracy, served in (("global", 0.25, [0, 0]), ("oracle", 0.75, [0, 1])):
        run = a_drifting_run(arm, 0, [0.5, 0.5], [served, served])
        run.header["byzantine"] = {"noise": np.array([1])}
        by_client = np.array([accuracy, 0.125], dtype=np.float32)
        changes = {"members": np.array(served), "client_accuracy": by_client}
        records = [replace(record, **changes) for record in run.records]
        store(directory, replace(run, records=records))
    (section,) = sections([MeasuredDirectory.read(directory, "known")])
    table = runs_table(section)
    assert [cell.figure for cell in column(table, "adjusted Rand index")] == ["0.00", "1.00"]
    assert [cell.figure for cell in column(table, "honest clients")] == ["25.0 %", "75.0 %"]
    assert [cell.figure for cell in column(table, "byzantine clients")] == ["12.5 %", "12.5 %"]
    reference, row = (row.as_json(section.paths) for row in section.rows)
    assert (reference["honest_gain_pp"], row["honest_gain_pp"]["per_seed"]) == (None, [50.0])
    assert row["adjusted_rand_index"]["per_seed"] == [1.0]
    notes = " ".join(runs_notes(section))
    assert "The adjusted Rand index compares clusters with the true concepts" in notes
    assert "the scored clients that are honest, or byzantine" in notes


def a_clustering_run(arm, seed, distances, reclustered=()):
    """A run of a round of ten seconds for each client distance (None: not measured)."""
    records = [
        a_record(number, mean_client_distance=value, reclustered=number in reclustered)
        for number, value in enumerate(distances)
    ]
    return replace(a_run(arm, seed, []), records=records)


def test_reclusterings_and_client_distance_up_to_the_horizon_stand_in_every_row_of_shared_runs(tmp_path):
    # The horizon is at 30 s: a fourth round does not count. No cell has the arm global for itself.
    cells = []
    for threshold, reclustered in ((0.1, (1, 2, 3)), (0.5, (2,))):
        clusterer = {"kind": "fielding", "threshold": threshold}
        arms = [
            {"name": "global", "clusterer": {"kind": "single"}},
            {"name": "fielding", "clusterer": clusterer},
        ]
        directory = a_directory(
            tmp_path / f"{threshold}",
            ["global", "fielding"],
            [0, 1],
            arm=arms,
            report={"window": 1, "horizon_s": 30.0},
        )
        for seed in (0, 1):
            store(directory, a_clustering_run("global", seed, [1.0, None, 2.0, 9.0]))
            rounds = reclustered if seed == 0 else reclustered[:1]
            store(directory, a_clustering_run("fielding", seed, [0.5, 0.25 + seed, None, 9.0], rounds))
        cells.append(MeasuredDirectory.read(directory, f"{threshold}"))
    section = compare(cells)
    assert [(row.arm, row.directories) for row in section.rows] == [
        ("global", ["0.1", "0.5"]),
        ("fielding", ["0.1"]),
        ("fielding", ["0.5"]),
    ]
    table = runs_table(section)
    assert [cell.lines for cell in column(table, "global re-clusterings")] == [
        ["0.0", "· 0.0 · 0.0"],
        ["1.5", "· 2.0 · 1.0"],
        ["1.0", "· 1.0 · 1.0"],
    ]
    # 0.5 and 0.25 in seed 0, 0.5 and 1.25 in seed 1.
    assert [cell.figure for cell in column(table, "client distance")] == ["1.50", "0.62", "0.62"]
    rows = [row.as_json(section.paths) for row in section.rows]
    assert [row["global_reclusterings"]["per_seed"] for row in rows] == [[0.0, 0.0], [2.0, 1.0], [1.0, 1.0]]
    assert [row["mean_client_distance"]["per_seed"] for row in rows] == [[1.5, 1.5], *[[0.375, 0.875]] * 2]
    assert {GLOBAL_RECLUSTERINGS_NOTE, CLIENT_DISTANCE_NOTE} < set(runs_notes(section))
    assert "global re-clusterings" in runs_table(section, in_terminal=True).headings


def test_reclusterings_and_client_distance_are_left_out_where_there_are_none_by_the_horizon(tmp_path):
    directory = a_directory(
        tmp_path / "a", ["global", "fielding"], [0], report={"window": 1, "horizon_s": 20.0}
    )
    for arm in ("global", "fielding"):
        store(directory, a_clustering_run(arm, 0, [None, None, 0.5], [2]))
    (section,) = sections([MeasuredDirectory.read(directory, "a")])
    assert runs_table(section).headings == ["row", "mean accuracy", "gain", "identical to", "bytes sent"]
    assert section.rows[0]["global_reclusterings"].per_seed == [0.0]
    assert section.rows[0]["mean_client_distance"].per_seed == [None]


def test_directories_that_no_key_tells_apart_are_named(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE})
    b = a_measured(tmp_path / "b", {"global": {seed + 3: values for seed, values in OTHER.items()}})
    table = runs_table(compare([a, b]))
    assert [cell.figure for cell in column(table, "run directory")] == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "mark", "note"),
    [
        ({"worlds": {0: {**WORLD, "fleet": "x"}}}, "p 0.681\nunpaired", "the test is Welch's"),
        (
            {"swept": {"trace.noise": 1.0}, "trace": {"noise": 1.0}},
            "p 0.074\nsame seed,\nother trace",
            "Same seed, other trace: it is paired by the number of the seed",
        ),
    ],
)
def test_what_is_not_paired_by_seed_is_marked(tmp_path, changes, mark, note):
    swept = {"swept": {"trace.noise": 0.5}, "trace": {"noise": 0.5}} if "swept" in changes else {}
    a = a_measured(tmp_path / "a", {"global": ONE}, **swept)
    b = a_measured(tmp_path / "b", {"global": OTHER}, **changes)
    section = compare([a, b])
    assert column(runs_table(section), "difference")[1].note == mark
    assert note in " ".join(runs_notes(section))


def test_a_difference_states_its_arm_and_number_of_seeds(tmp_path):
    a = a_measured(tmp_path / "a", {"global": {**ONE, 3: [0.5] * 3}})
    b = a_measured(tmp_path / "b", {"single": {**OTHER, 4: [0.5] * 3, 5: [0.5] * 3}})
    section = compare([a, b])
    cell = column(runs_table(section), "difference")[1]
    assert cell.lines == ["+4.0 pp", "[-1.0, +9.0]", "p 0.074", "over 3 seeds", "from global"]
    assert [seeds.figure for seeds in column(runs_table(section), "seeds")] == ["4", "5"]
    notes = " ".join(runs_notes(section))
    assert "is marked reference; if that has no arm of the name, from its global." in notes
    assert "Mean over seeds, with" in notes
    assert "A paired difference is over the seeds that both have." in notes


def test_the_only_cell_of_a_sweep_keeps_its_swept_keys(tmp_path):
    swept = {"round.participants": 7, "arm.global.clusterer": "single", "arm.global.clusterer.kind": "single"}
    (section,) = sections(
        [a_measured(tmp_path / "a", {"global": ONE}, swept=swept, round={"participants": 7})]
    )
    table = runs_table(section)
    assert table.headings[:2] == ["participants", "clusterer"]
    assert [cell.figure for cell in table.rows[0][1][:2]] == ["7", "single"]


def test_a_mass_event_before_the_horizon_of_some_runs_only_is_a_warning(tmp_path):
    # Rounds take ten seconds; the mass event is in round 2 of a, and after the last round of b.
    directories = [
        a_measured(
            tmp_path / name,
            {"global": constant(value, rounds=4)},
            trace={"drift": {"events": [{"round": number}]}},
            worlds=dict.fromkeys(range(1), WORLD),
        )
        for name, value, number in (("a", 0.5, 2), ("b", 0.6, 4))
    ]
    warnings = " ".join(runs_warnings(compare(directories)))
    assert (
        "the first mass event is before the horizon in 1 of 2 runs: they were compared on different"
        in warnings
    )
    assert "mass event" not in " ".join(runs_warnings(sections(directories[:1])[0]))


def test_a_target_that_moves_with_the_reference_is_no_common_target(tmp_path):
    a = a_measured(tmp_path / "a", {"global": ONE}, report={"targets": ["reference"]})
    assert "moves with the horizon: do not compare experiments by it" in " ".join(
        runs_notes(sections([a])[0])
    )


def test_long_values_are_cut(tmp_path):
    cells = [
        a_measured(
            tmp_path / str(index), {"global": constant(0.5 + index / 10)}, round={"x": "y" * 50 + str(index)}
        )
        for index in range(2)
    ]
    table = runs_table(compare(cells))
    assert [cell.figure for cell in column(table, "x")] == ["y" * 39 + "…"] * 2
    assert [cell.figure for cell in column(table, "run directory")] == ["0", "1"]


def test_the_stretch_and_its_limits_are_stated(tmp_path):
    a = a_measured(tmp_path / "a", {"global": {0: [0.5] * 10}})
    b = a_measured(tmp_path / "b", {"global": {0: [0.5] * 3}}, round={"participants": 10})
    section = compare([a, b])
    assert runs_horizon(section) == (
        "Compared up to 30.0 s of virtual time (b: global, seed 0, ended there), from 10.0 s, by which every "
        "run has been evaluated."
    )
    assert "Warning: the horizon is 30 % of the longest run" in " ".join(runs_warnings(section))
    assert "under three seeds" in " ".join(runs_notes(section))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1 / 3, 0.5], ["0.333333", "0.5"]),
        ([0.1, 0.1 + 1e-12], ["0.1", "0.10000000000100001"]),
        ([1.0, "auto"], ["1", "auto"]),
        ([True, False], ["yes", "no"]),
    ],
)
def test_values_of_keys_are_short_but_distinct(tmp_path, values, shown):
    cells = [
        a_measured(tmp_path / str(index), {"global": constant(0.5 + index / 10)}, round={"x": value})
        for index, value in enumerate(values)
    ]
    assert [cell.figure for cell in column(runs_table(compare(cells)), "x")] == shown
