from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.errors import ConfigurationError
from tests.traces.tiny import context, write_idx_folder
from traces.arrivals import SPLITS
from traces.patterns import drift_cells, named_pattern
from traces.sources.concepts import Concepts, ConceptsSettings
from traces.trace import Trace, TraceStream


def build(rounds: int = 6, seed: int = 0, folder: Path = Path(), **settings: Any) -> Trace:
    """By default two clients in three steps, with two rounds per step and four samples per client."""
    small = {
        "concepts": "sine",
        "pattern": ["00", "01", "11", "10"],
        "samples_per_step": 4,
        "rounds_per_step": 2,
    }
    source = Concepts(ConceptsSettings.model_validate({**small, **settings}))
    return source.build(context(rounds, seed, lambda path: folder / path))


def samples(trace: Trace, rows: np.ndarray) -> list[tuple[bytes, int]]:
    """The features and label of each of these rows, without order."""
    features = trace.features(rows)
    labels = trace.labels(rows).tolist()
    return sorted((features[i].tobytes(), labels[i]) for i in range(len(rows)))


def of_batch(trace: Trace, client: int, split: int, arrival: int) -> np.ndarray:
    table = trace.columns()
    return np.flatnonzero((table.client == client) & (table.split == split) & (table.arrival == arrival))


def test_a_trace_has_a_client_for_each_column_and_a_step_for_each_row_but_the_last() -> None:
    trace = build()
    assert (trace.num_clients, trace.last_step, trace.num_labels, trace.sample_shape) == (2, 2, 2, (2,))
    assert len(trace) == 2 * (2 * 3 * 4)
    assert trace.concepts is not None
    assert trace.concepts.tolist() == [[0, 0], [0, 1], [1, 1], [1, 0]]


IMAGE_CONCEPTS = [{"kind": kind, "folder": "set"} for kind in ("label_subsets", "label_swaps")]


@pytest.mark.parametrize("concepts", ["sine", "circle", "sea", *IMAGE_CONCEPTS])
def test_the_test_samples_of_a_step_are_the_training_arrivals_of_the_next(
    tmp_path: Path, concepts: Any
) -> None:
    write_idx_folder(tmp_path / "set", num_labels=8, per_label=8)
    trace = build(folder=tmp_path, concepts=concepts)
    for client in range(2):
        for step in range(2):
            tested = samples(trace, of_batch(trace, client, 1, step))
            assert len(tested) == 4
            assert tested == samples(trace, of_batch(trace, client, 0, step + 1))


def test_the_last_batch_is_tested_and_never_trained(tmp_path: Path) -> None:
    write_idx_folder(tmp_path / "set", num_labels=8, per_label=6)
    trace = build(folder=tmp_path, concepts={"kind": "label_swaps", "folder": "set"})
    table = trace.columns()
    tested = table.image[(table.split == 1) & (table.arrival == 2)]
    assert len(tested) == 8
    assert not np.isin(tested, table.image[table.split == 0]).any()


@pytest.mark.parametrize("concepts", ["sine", *IMAGE_CONCEPTS])
def test_nobody_has_been_trained_on_what_anybody_is_tested_on(tmp_path: Path, concepts: Any) -> None:
    write_idx_folder(tmp_path / "set", num_labels=8, per_label=8)
    trace = build(folder=tmp_path, concepts=concepts)
    table = trace.columns()
    stream, everyone = TraceStream(trace), np.arange(2)
    for round_ in range(6):
        stream.advance_to_round(round_)
        trained, tested = (
            [stream.held(everyone, split).rows(client) for client in range(2)] for split in SPLITS
        )
        assert [len(rows) for rows in trained] == [4 * (stream.step + 1)] * 2  # kept for ever
        assert [len(rows) for rows in tested] == [4, 4]  # kept for one step
        trained_on = table.image[np.concatenate(trained)]
        assert not np.isin(table.image[np.concatenate(tested)], trained_on).any()


def test_samples_are_of_the_concept_that_the_stream_reports() -> None:
    trace = build(samples_per_step=50)
    stream, everyone = TraceStream(trace), np.arange(2)
    for round_ in (0, 2, 4):
        stream.advance_to_round(round_)
        step = stream.step
        newest = stream.arrived(everyone, step, step)
        for ranges, concepts in (
            (newest, stream.concepts),
            (stream.held(everyone, "test"), stream.test_concepts),
        ):
            assert concepts is not None
            for client in range(2):
                rows = ranges.rows(client)
                assert len(rows) == 50
                x1, x2 = trace.features(rows).astype(np.float64).T
                below = x2 <= np.sin(x1)
                assert (trace.labels(rows) == (below if concepts[client] == 0 else ~below)).all()


def test_where_the_streams_two_concepts_differ_is_a_drift_cell() -> None:
    trace = build(rounds=10, pattern="F", concepts="sea", rounds_per_step=1)
    stream = TraceStream(trace)
    drifts = []
    for round_ in range(10):
        stream.advance_to_round(round_)
        assert stream.concepts is not None
        assert stream.test_concepts is not None
        drifts.append(stream.concepts != stream.test_concepts)
    assert np.array_equal(np.array(drifts), drift_cells(named_pattern("F")))


@pytest.mark.slow
@pytest.mark.parametrize("concepts", ["sine", {"kind": "label_subsets", "folder": "set"}])
def test_runs_of_all_seeds_see_the_same_data_unless_they_are_to_draw_their_own(
    tmp_path: Path, concepts: Any
) -> None:
    write_idx_folder(tmp_path / "set", num_labels=8, per_label=8)

    def digest(seed: int, **settings: Any) -> str:
        return build(seed=seed, folder=tmp_path, concepts=concepts, **settings).digest()

    assert digest(0) == digest(1)
    assert digest(0, data_seed=5) == digest(1, data_seed=5) != digest(0)
    assert digest(1, data_seed="run") == digest(0, data_seed=1)
    assert digest(2, data_seed="run") != digest(1, data_seed="run")


def test_a_shorter_run_sees_the_same_trace() -> None:
    assert build(rounds=5).digest() == build(rounds=6).digest()


def test_the_digest_knows_the_pattern() -> None:
    # With these thresholds concepts 1 and 3 have equal labels, so only the true concepts differ.
    files = {"kind": "sea", "thresholds": [8, 9, 7, 9]}
    first, second = (build(rounds=2, concepts=files, pattern=["11", last]) for last in ("11", "33"))
    assert np.array_equal(first.columns().label, second.columns().label)
    assert first.digest() != second.digest()


def test_r_is_the_redrawing_pattern_of_the_runs_seed() -> None:
    for seed in (0, 9):
        trace = build(rounds=15, seed=seed, pattern="R", concepts="sea")
        assert trace.concepts is not None
        assert np.array_equal(trace.concepts, named_pattern(f"R{seed}"))
    with pytest.raises(ConfigurationError, match=r'pattern = "R": .* there are R0 to R9; seed 10 has none'):
        build(seed=10, pattern="R", concepts="sea")


def test_more_rounds_than_the_pattern_has_data_for_are_one_clear_line() -> None:
    with pytest.raises(ConfigurationError, match=r"round\.rounds = 7: .* 3 steps .* = 2 last for 6 rounds"):
        build(rounds=7)


@pytest.mark.parametrize(
    ("pattern", "rounds", "step"),
    [(["00", "01", "11", "10"], 4, 2), (["00", "01", "11", "11"], 2, 1), ("Y", 14, 7)],
)
def test_a_run_that_ends_before_the_pattern_last_changes_is_refused(
    pattern: Any, rounds: int, step: int
) -> None:
    build(rounds=rounds + 1, pattern=pattern)
    with pytest.raises(ConfigurationError) as refused:
        build(rounds=rounds, pattern=pattern)
    assert str(refused.value) == (
        f"round.rounds = {rounds}: at trace.rounds_per_step = 2 the run ends before data step {step}, at "
        f"which trace.pattern still changes: set round.rounds above {rounds}, or lower "
        f"trace.rounds_per_step, or shorten the pattern"
    )


def test_a_trace_that_nobody_could_hold_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(ConfigurationError, match=r"trace\.samples_per_step = 1000000000: .* 8 cells"):
        build(samples_per_step=10**9)


@pytest.mark.parametrize(
    ("settings", "where", "problem"),
    [
        ({"pattern": "F"}, (), "pattern 'F' uses concept 3, but the concepts of 'sine' are 0 to 1"),
        ({"pattern": "R"}, (), "pattern 'R' uses concept 3, but the concepts of 'sine' are 0 to 1"),
        ({"pattern": ["02", "00"]}, (), r"pattern \['02', '00'\] uses concept 2, but the concepts of"),
        ({"pattern": "Q"}, ("pattern",), "no such pattern; choices: Y, Z"),
        ({"pattern": ["00", "0"]}, ("pattern",), "row 1 of the pattern has 1 digits, row 0 has 2"),
        ({"pattern": 3}, ("pattern",), "must be the name of a pattern, or a list of rows of digits"),
        (
            {"concepts": "sinus"},
            ("concepts",),
            "unknown concept set 'sinus'; choices: .*; did you mean 'sine'",
        ),
        ({"concepts": {"kind": "sea", "noise": 2}}, ("concepts", "noise"), "less than or equal to 1"),
        ({"data_seed": -1}, ("data_seed",), "greater than or equal to 0"),
        ({"data_seed": "ran"}, ("data_seed",), "must be a number, or 'run' for the run's own seed"),
        (
            {"concepts": {"kind": "label_swaps", "folder": "set", "swaps": [[1, 2], [3, 3]]}},
            ("concepts", "swaps"),
            r"\[3, 3\] swaps a label with itself",
        ),
        ({"samples_per_step": 0}, ("samples_per_step",), "greater than or equal to 1"),
    ],
)
def test_a_parameter_that_breaks_a_rule_is_named_by_its_path(
    settings: dict[str, Any], where: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem) as caught:
        build(**settings)
    assert caught.value.errors()[0]["loc"][: len(where) or None] == where  # then the choice of a union


def test_a_pattern_may_use_as_many_concepts_as_there_are_swaps() -> None:
    folder = {"kind": "label_swaps", "folder": "set", "swaps": [[1, 2]]}
    ConceptsSettings.model_validate({"concepts": folder, "pattern": "Y"})
    with pytest.raises(ValidationError, match="the concepts of 'label_swaps' are 0 to 1"):
        ConceptsSettings.model_validate({"concepts": folder, "pattern": "F"})
