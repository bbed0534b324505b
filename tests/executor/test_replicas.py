"""Ranks compute the same as one process, to the bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from emulator.arrays import Floats32, Ints
from emulator.errors import ResumableError
from emulator.messages import TASK_METRICS, InferencePlan, Metric, SampleRanges
from emulator.ports import Executor
from executor.executor import LocalExecutor
from executor.inference.prediction import EVALUATION_BATCH
from executor.ranks import Ranks
from executor.replicas import ReplicatedExecutor, ReplicatedUpdates, _digest
from executor.sharing import share
from tests.executor.fakes import FakeReader, executor, model, rule, wave
from tests.executor.meeting import together

CASES = ["mlp-sgd", "mlp-adam", "cnn-prox"]
EVERYTHING: frozenset[Metric] = frozenset(get_args(Metric))
TASKS = replace(
    wave(counts=[9, 3, 12, 0, 5, 30, 7, 8], steps=[4, 1, 6, 2, 6, 3, 3, 2], batch_size=[4] * 6 + [3] * 2),
    measure=frozenset(TASK_METRICS),
)
"""Tasks of different lengths and of two batch sizes; one client has no samples. All metrics are measured."""

TORN_ROW = 25
RULES: dict[str, Callable[[], list[Any]]] = {
    "sgd": lambda: [rule("sgd")],
    "adam": lambda: [rule("adam")],
    "prox": lambda: [rule("fedprox", mu=0.5), rule("sgd", momentum=0.9)],
}


class TornReader(FakeReader):
    """A reader that fails on one sample."""

    def features(self, rows: Ints) -> Floats32:
        if TORN_ROW in rows:
            raise OSError(5, "cannot be read", f"row {TORN_ROW}")
        return super().features(rows)


def build(case: str, reader: type[FakeReader] = FakeReader, **settings: object) -> LocalExecutor:
    """The executor of a case `<model>-<solver>`, with up to four tasks a group, whose sums have an order."""
    kind, solver = case.split("-")
    spec = model("cnn", channels=[3, 5]) if kind == "cnn" else model(kind)
    samples = reader(rows=6 * EVALUATION_BATCH, sample_shape=(8, 8))
    return executor(samples, spec, RULES[solver](), chunk=4, **settings)


def by_ranks(size: int, case: str, play: Callable[[ReplicatedExecutor, Ranks], Any]) -> list[Any]:
    return together(size, lambda ranks: play(ReplicatedExecutor(build(case), ranks), ranks))


def start_of(local: LocalExecutor) -> tuple[Floats32, Ints]:
    """Two models, from which the tasks start alternately."""
    return np.stack([local.initial(0), local.initial(1)]), np.arange(len(TASKS)) % 2


def whole_trace(clients: int = 39) -> SampleRanges:
    edges = np.linspace(0, 3072, clients + 1).astype(np.int64)
    return SampleRanges.one_each(edges[:-1], edges[1:])


def weights() -> np.ndarray:
    """(3, n) weights of all updates, of none, and of a few."""
    drawn = np.random.default_rng(0).random((3, len(TASKS)))
    drawn[1] = 0
    drawn[2, :5] = 0
    return drawn


def no_error(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_it_implements_the_port() -> None:
    local = build("mlp-sgd")

    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        port: Executor = replicated
        assert port.num_parameters == local.num_parameters
        assert port.initial(3).tobytes() == local.initial(3).tobytes()
        assert (replicated.strategy, replicated.chunk) == (local.strategy, local.chunk)
        assert (port.layout, port.solver) == (local.layout, local.solver)
        assert ranks.exchanges == 0

    no_error(by_ranks(2, "mlp-sgd", play))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_training_is_the_same_by_any_number_of_ranks(case: str, size: int) -> None:
    local = build(case)
    models, start = start_of(local)
    theirs = [local.train(TASKS, models, start)]
    theirs.append(local.train(replace(TASKS, state=theirs[0].state), models, start))

    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        tasks = TASKS
        for expected in theirs:  # the second time with the solver state of the first
            ours = replicated.train(tasks, models, start)
            same_columns(ours, expected)
            chosen = np.array([1, 3, 4])
            taken, expected_taken = ours.take(chosen), expected.take(chosen)
            assert ours.weighted_sum(weights()).tobytes() == expected.weighted_sum(weights()).tobytes()
            assert (
                taken.weighted_sum(weights()[:, :3]).tobytes()
                == expected_taken.weighted_sum(weights()[:, :3]).tobytes()
            )
            assert ours.norms().tobytes() == expected.norms().tobytes()
            assert taken.norms().tobytes() == expected_taken.norms().tobytes()
            exchanges = ranks.exchanges
            assert ours.project(models).tobytes() == expected.project(models).tobytes()
            assert ranks.exchanges == exchanges + 1
            assert taken.project(models).tobytes() == expected_taken.project(models).tobytes()
            assert taken.gram().tobytes() == expected_taken.gram().tobytes()
            exchanges = ranks.exchanges
            assert ours.rows(slice(3, 9)).tobytes() == expected.rows(slice(3, 9)).tobytes()
            assert ours.weighted_sum(weights()).tobytes() == expected.weighted_sum(weights()).tobytes()
            assert ours.norms().tobytes() == expected.norms().tobytes()
            assert ours.project(models).tobytes() == expected.project(models).tobytes()
            assert ranks.exchanges == exchanges  # the rows are in memory by now
            tasks = replace(tasks, state=expected.state)

    no_error(by_ranks(size, case, play))


def same_columns(ours: ReplicatedUpdates, theirs: Any) -> None:
    for name in ("client", "model", "num_samples", "num_steps", "finite"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    assert list(ours.metrics) == list(theirs.metrics) == ["loss", *TASK_METRICS]
    for name, column in theirs.metrics.items():
        assert ours.metrics[name].tobytes() == column.tobytes()
    assert ours.state.keys() == theirs.state.keys()
    for name, rows in theirs.state.items():
        assert ours.state[name].tobytes() == rows.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_expected_sums_come_with_the_training_and_are_the_same(case: str, size: int) -> None:
    local = build(case)
    models, start = start_of(local)
    theirs, summed = local.train(TASKS, models, start), local.train(TASKS, models, start, weights())
    assert summed.weighted_sum(weights()).tobytes() == theirs.weighted_sum(weights()).tobytes()
    chosen = np.arange(1, len(TASKS))

    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        ours = replicated.train(TASKS, models, start, weights())
        assert ours.weighted_sum(weights()).tobytes() == theirs.weighted_sum(weights()).tobytes()
        assert ranks.exchanges == 1
        thirds = weights() / 3
        assert ours.weighted_sum(thirds).tobytes() == theirs.weighted_sum(thirds).tobytes()
        assert ranks.exchanges == 2
        of_chosen = weights()[:, chosen]
        sums = ours.take(chosen).weighted_sum(of_chosen)
        assert sums.tobytes() == theirs.take(chosen).weighted_sum(of_chosen).tobytes()

    no_error(by_ranks(size, case, play))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_evaluation_scores_and_reports_are_the_same_by_any_number_of_ranks(case: str, size: int) -> None:
    local = build(case)
    models, samples = start_of(local)[0], whole_trace()
    turns = np.arange(39)[:, None] % 2
    plans = (
        InferencePlan.alike(turns),
        InferencePlan.alike(np.tile([0, 1], (39, 1))),
        InferencePlan(np.tile([0, 1], (39, 1)), np.where(turns, [[0.3, 0.7]], [[1.0, 0.0]]), "votes"),
        InferencePlan.alike(np.full((39, 1), -1)),
    )
    own = models[turns[:, 0]]
    evaluated = [local.evaluate(models, plan, samples) for plan in plans]
    evaluated.append(local.evaluate(own, InferencePlan.own(39), samples))
    scored = local.score(models, samples, EVERYTHING)
    embedded, differentiated = local.embeddings(models[1], samples), local.gradients(models[1], samples)

    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        for plan, theirs in zip((*plans, InferencePlan.own(39)), evaluated, strict=True):
            ours = replicated.evaluate(own if plan.is_own else models, plan, samples)
            assert ours.accuracy.tobytes() == theirs.accuracy.tobytes()
            assert ours.loss.tobytes() == theirs.loss.tobytes()
        scores = replicated.score(models, samples, EVERYTHING)
        for name in ("counts", *EVERYTHING):
            assert getattr(scores, name).tobytes() == getattr(scored, name).tobytes()
        assert replicated.score(models[:0], samples, EVERYTHING).accuracy().shape == (39, 0)
        assert replicated.embedding_size == embedded.shape[1]
        assert replicated.embeddings(models[1], samples).tobytes() == embedded.tobytes()
        assert replicated.gradients(models[1], samples).tobytes() == differentiated.tobytes()

    no_error(by_ranks(size, case, play))


def test_updates_that_are_not_finite_are_flagged_and_can_be_left_out() -> None:
    local = build("mlp-sgd")
    models, start = start_of(local)
    diverges = np.isin(np.arange(len(TASKS)), (1, 4))
    tasks = replace(TASKS, settings={**TASKS.settings, "learning_rate": np.where(diverges, 1e39, 0.1)})
    theirs = local.train(tasks, models, start)

    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        ours = replicated.train(tasks, models, start, weights())
        assert ours.finite.tolist() == theirs.finite.tolist() == (~diverges).tolist()
        finite = np.flatnonzero(ours.finite)
        sums = ours.take(finite).weighted_sum(weights()[:, finite])
        assert np.isfinite(sums).all()
        assert sums.tobytes() == theirs.take(finite).weighted_sum(weights()[:, finite]).tobytes()

    no_error(by_ranks(2, "mlp-sgd", play))


def test_an_empty_wave_is_no_special_case() -> None:
    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        models = start_of(build("mlp-sgd"))[0]
        updates = replicated.train(wave([], []), models, np.zeros(0, dtype=np.int64))
        sums = updates.weighted_sum(np.zeros((2, 0)))
        assert (len(updates), sums.shape) == (0, (2, replicated.num_parameters))

    no_error(by_ranks(2, "mlp-sgd", play))


def test_a_rank_trains_only_its_share() -> None:
    def play(ranks: Ranks) -> int:
        local = build("mlp-sgd")
        models, start = start_of(local)
        updates = ReplicatedExecutor(local, ranks).train(TASKS, models, start)
        return int(updates.wave.trained.delta.any(axis=1).sum())

    counts = no_error(together(2, play))
    assert sum(counts) == 7  # one has no samples
    assert min(counts) >= 2


def test_an_error_in_one_rank_is_raised_in_all() -> None:
    def play(ranks: Ranks) -> None:
        torn = ranks.rank == owner_of_row(TORN_ROW)
        local = build("mlp-sgd", TornReader if torn else FakeReader)
        with ranks.telling(ends=False):
            ReplicatedExecutor(local, ranks).train(TASKS, *start_of(local))

    for error in together(3, play):
        assert isinstance(error, OSError)
        assert (error.strerror, error.filename) == ("cannot be read", f"row {TORN_ROW}")


def owner_of_row(row: int) -> int:
    """The rank, of three, that trains on this row."""
    local = build("mlp-sgd")
    groups, steps = local.cut(TASKS, *start_of(local))
    owner = share(np.array([steps[members].sum() for members in groups]), 3)
    task = int(np.searchsorted(TASKS.samples.last, row, side="right"))
    [number] = [number for number, members in enumerate(groups) if task in members]
    return int(owner[number])


@pytest.mark.parametrize("kind", ["embeddings", "gradients"])
def test_an_error_in_one_rank_during_a_report_is_raised_in_all(kind: str) -> None:
    def play(ranks: Ranks) -> None:
        # The larger of two slabs, which rank 0 computes, has the torn row.
        local = build("mlp-sgd", TornReader if ranks.rank == 0 else FakeReader)
        with ranks.telling(ends=False):
            getattr(ReplicatedExecutor(local, ranks), kind)(local.initial(0), whole_trace())

    for error in together(2, play):
        assert isinstance(error, OSError)
        assert (error.strerror, error.filename) == ("cannot be read", f"row {TORN_ROW}")


@pytest.mark.parametrize("kind", ["embeddings", "gradients"])
def test_a_rank_that_is_asked_to_stop_during_a_report_ends_it_and_tells_all(kind: str) -> None:
    asked = threading.Event()

    class AskedReader(FakeReader):
        def features(self, rows: Ints) -> Floats32:
            asked.set()
            return super().features(rows)

    def play(ranks: Ranks) -> tuple[bool, bool, bytes]:
        local = build("mlp-sgd", AskedReader if ranks.rank == 1 else FakeReader)
        before = ranks.stop_requested
        reports = getattr(ReplicatedExecutor(local, ranks), kind)(local.initial(0), whole_trace())
        return before, ranks.stop_requested, reports.tobytes()

    local = build("mlp-sgd")
    expected = getattr(local, kind)(local.initial(0), whole_trace()).tobytes()
    wants_stop = [lambda: False, asked.is_set]
    assert no_error(together(2, play, wants_stop=wants_stop)) == [(False, True, expected)] * 2


@pytest.mark.parametrize("kind", ["embeddings", "gradients"])
def test_ranks_with_different_reference_models_are_noticed_in_a_report(kind: str) -> None:
    def play(ranks: Ranks) -> None:
        local = build("mlp-sgd")
        reference = local.initial(0)
        reference[5] += 1e-6 * (ranks.rank == 1)
        getattr(ReplicatedExecutor(local, ranks), kind)(reference, whole_trace())

    for error in together(2, play):
        assert isinstance(error, ResumableError)
        assert f"rank 1 computes something else than rank 0, computing {kind}" in str(error)


def test_ranks_with_different_models_are_noticed_in_the_wave() -> None:
    def play(ranks: Ranks) -> None:
        local = build("mlp-sgd")
        models, start = start_of(local)
        models[1, 5] += 1e-6 * (ranks.rank == 1)
        ReplicatedExecutor(local, ranks).train(TASKS, models, start)

    for error in together(2, play):
        assert isinstance(error, ResumableError)
        assert "rank 1 computes something else than rank 0, training in dispatch 2" in str(error)


def test_ranks_that_measure_different_metrics_are_noticed() -> None:
    def play(ranks: Ranks) -> None:
        local = build("mlp-sgd")
        tasks = TASKS if ranks.rank == 0 else replace(TASKS, measure=frozenset())
        ReplicatedExecutor(local, ranks).train(tasks, *start_of(local))

    for error in together(2, play):
        assert isinstance(error, ResumableError)
        assert "rank 1 computes something else than rank 0, training in dispatch 2" in str(error)


def test_ranks_that_project_on_different_vectors_are_noticed() -> None:
    def play(replicated: ReplicatedExecutor, ranks: Ranks) -> None:
        models, start = start_of(build("mlp-sgd"))
        updates = replicated.train(TASKS, models, start)
        models[1, 5] += 1e-6 * (ranks.rank == 1)
        updates.project(models)

    for error in by_ranks(2, "mlp-sgd", play):
        assert isinstance(error, ResumableError)
        assert "rank 1 computes something else than rank 0, projecting updates" in str(error)


def test_the_digest_of_a_set_does_not_depend_on_its_order_in_memory() -> None:
    """A set of strings has another order in each process; these numbers collide, and keep theirs."""
    left, right = frozenset([0, 8]), frozenset([8, 0])
    assert repr(left) != repr(right)
    assert _digest(left) == _digest(right) != _digest(frozenset([0]))


def test_groups_that_any_rank_halves_are_counted_in_all() -> None:
    def play(ranks: Ranks) -> int:
        local = build("mlp-sgd", on_out_of_memory="halve")
        models, start = start_of(local)
        train = local._strategy.train
        if ranks.rank == 1:

            def refuse_pairs(group: Any) -> Any:
                if len(group) > 1:
                    raise MemoryError("no room for two")
                return train(group)

            local._strategy.train = refuse_pairs  # type: ignore[method-assign]
        replicated = ReplicatedExecutor(local, ranks)
        replicated.train(TASKS, models, start)
        return replicated.halved_groups

    counts = no_error(together(3, play))
    assert len(set(counts)) == 1
    assert counts[0] > 0
