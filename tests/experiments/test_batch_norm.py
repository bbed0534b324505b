"""Batch norm under every aggregator and local rule: averaged with its statistics, or kept by each client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.aggregators import AGGREGATORS
from coordinator.federation.training.trained import Trained
from emulator.arrays import Floats32
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates, SampleRanges
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from executor.executor import LocalExecutor
from executor.rules import RULES
from executor.rules.base import KEPT
from executor.settings import BatchNorm
from experiments.build import build_emulation, build_executor, build_world
from experiments.checks.arms import check_arms
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from tests.executor.fakes import FakeReader, module, rule, wave
from tests.executor.modules.foreign import BNMLP
from tests.experiments.small import small

MODEL = {"kind": "tests.executor.modules.foreign:BNMLP", "d_in": 64, "n_classes": 10, "hidden": 8}
PAIRED = ("scaffold", "feddc", "feddyn")
BUFFERED = {"pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4}}


class Records(list[RoundRecord]):
    """A log in memory."""

    def append_visits(self, rows: object) -> None:
        """Forget them."""


def played(arm: dict[str, Any], **training: Any) -> tuple[LocalExecutor, Floats32, Records]:
    """The executor, the models after 30 rounds, and the records."""
    changes, rounds = {"model": MODEL, **training}, {"rounds": 30, "over_commit": 1}
    experiment = small(training=changes, round=rounds, arm=[{"name": "a", **arm}])
    world, [only], log = build_world(experiment, 0, locator(None, None)), experiment.arm, Records()
    check_arms(experiment, ["a"], world)
    executor = build_executor(experiment, only, world)
    emulation = build_emulation(experiment, only, world, executor, log, (), Stopwatch())
    emulation.run()
    return executor, emulation.coordinator.federation.bank.parameters, log


def of_layer(executor: LocalExecutor, models: Floats32, tensor: str) -> Floats32:
    segment = executor.layout[f"bn.{tensor}"]
    return models[:, segment.first : segment.last]


def solver_of(rule: str) -> list[str]:
    return [rule] if rule in ("adam", "sgd") else [rule, "sgd"]


ARMS: dict[str, dict[str, Any]] = {
    **{
        name: {"aggregator": name, "solver": solver_of(name if name in PAIRED else "sgd")}
        for name in AGGREGATORS.ours()
    },
    **{f"rule {name}": {"solver": solver_of(name)} for name in RULES.ours() if name not in PAIRED},
    "buffered": {"aggregator": "fedbuff", **BUFFERED},
    "buffered async_mix": {"aggregator": "async_mix", **BUFFERED},
    "flexcfl": {"clusterer": {"kind": "flexcfl", "num_groups": 2, "pretrain_steps": 2}},
    "clusters": {"clusterer": {"kind": "fielding", "max_clusters": 3}},
}
ARMS["krum"] |= {"aggregator": {"kind": "krum", "byzantine": 0}}
ARMS["rule early_stopping"] |= {"training": {"local_epochs": 3}}


@pytest.mark.parametrize("name", ARMS)
def test_variances_stay_finite_and_positive_and_all_statistics_move(name: str) -> None:
    executor, models, _ = played(ARMS[name])
    assert np.isfinite(models).all()
    assert (of_layer(executor, models, "running_var") > 0).all()
    assert (of_layer(executor, models, "running_var") != 1).all()
    assert (of_layer(executor, models, "running_mean") != 0).all()


def test_the_federation_takes_the_mean_of_statistics_by_samples() -> None:
    """Of model 0, three samples at 1 and one at 5; of model 1 a client without samples, which is nothing."""
    column = np.arange(3)
    updates = ArrayUpdates(
        *(column, column, np.array([3, 1, 0]), 0 * column + 2, np.zeros((3, 4), dtype=np.float32)),
        of_batch_norm=np.array([[1, 10], [5, 2], [7, 7]], dtype=np.float32),
    )
    flags = np.ones(3, dtype=bool)
    samples = SampleRanges.one_each(column, column + 1)
    trained = Trained(updates, 0 * column, np.array([0, 0, 1]), flags, flags, flags, samples)
    present = np.array([[8, 8], [9, 9]], dtype=np.float32)
    assert trained.mean_statistics(present).tolist() == [[2, 8], [9, 9]]


def test_a_model_and_its_statistics_are_charged() -> None:
    """64 x 8 + 8, 8 + 8 and 8 x 10 + 10 parameters, and 8 + 8 statistics, of 4 bytes, for each of three."""
    executor, _, averaged = played({})
    assert (executor.num_parameters, executor.solver.statistics) == (642, 16)
    assert averaged[0].download_bytes == 3 * 4 * 642
    assert averaged[0].upload_bytes == pytest.approx(3 * 4 * 642)
    _, _, kept = played({}, batch_norm="kept")
    assert kept[0].download_bytes == 3 * 4 * (642 - 32)
    assert kept[0].upload_bytes == pytest.approx(3 * 4 * (642 - 32))


def test_what_is_kept_never_reaches_the_server_and_serves_its_client() -> None:
    executor, models, log = played({}, batch_norm="kept")
    for tensor, start in {"weight": 1, "bias": 0, "running_mean": 0, "running_var": 1}.items():
        assert (of_layer(executor, models, tensor) == start).all()
    last = log[-1]
    assert last.personal_accuracy is not None
    assert last.personal_accuracy > last.accuracy


def local(batch_norm: BatchNorm | None) -> LocalExecutor:
    spec, reader = module(BNMLP, d_in=6, n_classes=4, hidden=3), FakeReader()
    return LocalExecutor(reader, spec, [rule("sgd")], RandomStreams(0), batch_norm=batch_norm)


def test_two_clients_that_keep_theirs_are_fedbn_by_hand() -> None:
    """Each trains from what it kept, all else from the mean; as whole models are trained by hand below."""
    kept, whole = local("kept"), local(None)
    layout, start = kept.layout, kept.initial(0)
    own = np.zeros(len(start), dtype=bool)
    for name, segment in layout.items():
        own[segment.first : segment.last] = name.startswith("bn.")
    size = len(start) - kept.solver.statistics
    server, clients = start.copy(), np.stack([start, start])  # by hand: whole models, of which `own` is kept
    state: dict[str, Floats32] = {}
    row = np.zeros(2, dtype=np.int64)
    for round_ in range(3):
        of_round = wave(counts=[8, 8], steps=[3, 3], round_=round_)
        updates = kept.train(replace(of_round, state=state), server[None], row)
        clients = np.where(own, clients, server)
        by_hand = whole.train(of_round, clients, np.arange(2))
        clients = np.hstack([clients[:, :size] + by_hand.delta, by_hand.statistics])
        assert np.allclose(updates.state[KEPT], clients[:, own], atol=1e-6)
        assert not updates.delta[:, own[:size]].any()
        assert (updates.statistics == server[size:]).all()
        server = np.append(server[:size] + updates.delta.mean(axis=0), server[size:])
        assert np.allclose(server[~own], clients[:, ~own].mean(axis=0), atol=1e-6)
        state = dict(updates.state)
        assert np.allclose(
            kept.personal(np.stack([server, server]), state), np.where(own, clients, server), atol=1e-6
        )


def test_a_model_without_batch_norm_has_nothing_to_keep() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^arm 'a': training\.batch_norm = 'kept': the model has no batch norm"
    ):
        played({}, model="linear", batch_norm="kept")


def test_what_other_parts_cannot_be_beside_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="leaves 32 of them with the client; take one of the two"):
        played({"aggregator": "scaffold", "solver": ["scaffold", "sgd"]}, batch_norm="kept")
