"""Adaptations in the federation: what they evaluate and cost, and that nothing that is trained changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from coordinator.adaptations import Adaptation, ClientView, Served
from coordinator.adaptations.alone import Alone, AloneSettings
from coordinator.adaptations.none import NoAdaptation
from coordinator.adaptations.prior import Prior, PriorSettings
from coordinator.adaptations.relabelled import Relabelled, RelabelledSettings
from coordinator.adaptations.tuned import Tuned, TunedSettings
from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation import adapting
from coordinator.federation.evaluation.adapting import ADAPTED, ADAPTED_AFTER, Adapting
from coordinator.federation.hearing import Reference, Reports
from coordinator.federation.method import RoundSettings
from coordinator.population import Hear
from coordinator.representations.base import ReferenceSettings
from coordinator.representations.embedding import Embedding
from coordinator.representations.gradient import Gradient, GradientSettings
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.latency import DriftscaleLatency
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    SampleRanges,
    SolverFacts,
    StateSpec,
    TrainTasks,
)
from emulator.ports import Split
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from executor.executor import LocalExecutor
from executor.training.batches import task_batches
from executor.training.groups import Wave
from executor.training.reference import ReferenceLoop
from tests.executor.fakes import FakeReader, executor, rule
from tests.fakes import (
    NOTHING,
    FakeAvailability,
    FakeClusterer,
    FakeExecutor,
    FakeStream,
    Played,
    Population,
    a_fleet,
    fresh,
)

MIXES = [np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])]
"""The label shares of three clients at two data steps; client 1's never change."""


def played(adaptation: Adaptation, **settings: Any) -> Played:
    """Three clients with targets 0, 1/4 and 1/2, two of which take part in each of four rounds."""
    population = Population(
        FakeExecutor([0.0, 0.25, 0.5]),
        stream=FakeStream(MIXES, rounds_per_step=2, train=[4, 8, 4]),
        adaptation=adaptation,
        rounds=4,
        **{"local_steps": 3, "batch_size": 2, "participants": 2, **settings},
    )
    return population.play()


def without(records: list[RoundRecord], *names: str) -> list[dict[str, Any]]:
    return [
        {name: str(value) for name, value in vars(record).items() if name not in names} for record in records
    ]


OF_ADAPTATIONS = ("accuracy", "accuracy_std", "loss", "adaptation_samples", "adaptation_s")


@pytest.mark.parametrize(
    "adaptation",
    [
        Prior(PriorSettings()),
        Tuned(TunedSettings()),
        Relabelled(RelabelledSettings()),
        Tuned(TunedSettings(local_steps=9, again="data")),
    ],
)
def test_an_adaptation_changes_what_is_evaluated_and_nothing_else(
    adaptation: Adaptation, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = played(NoAdaptation(NOTHING))
    monkeypatch.setattr(
        Relabelled, "adapt", lambda self, view: Served(view.models, view.plan)
    )  # no logits here
    adapted = played(adaptation)
    assert without(adapted.records, *OF_ADAPTATIONS) == without(plain.records, *OF_ADAPTATIONS)
    assert adapted.models == plain.models
    assert plain.records[0].adaptation_samples is plain.records[0].adaptation_s is None


def test_a_copy_of_each_client_is_tuned_and_evaluated() -> None:
    """A task moves a model by half the way to its client's target, whatever its steps are."""
    plain, tuned = played(NoAdaptation(NOTHING)), played(Tuned(TunedSettings()))
    for served, copies in zip(plain.executor.evaluated, tuned.executor.evaluated, strict=True):
        (models, _), (own, serves) = served, copies
        np.testing.assert_allclose(own[:, 0], (models[0, 0] + np.array([0.0, 0.25, 0.5])) / 2, rtol=1e-6)
        assert serves.tolist() == [0, 1, 2]
    tasks = [wave for wave in tuned.executor.waves if (wave.model == ADAPTED).all()]
    assert [wave.dispatch.tolist() for wave in tasks] == [
        [number] * len(wave) for number, wave in enumerate(tasks)
    ]
    assert all((wave.settings["local_steps"] == 5).all() for wave in tasks)


@pytest.mark.parametrize(
    ("adaptation", "samples", "computed"),
    [
        (Prior(PriorSettings()), [0, 0, 0, 0], [0, 0, 0, 0]),
        # 3 clients, 5 steps of 2 samples, 1 s each; two again at the second data step, in round 2.
        (Tuned(TunedSettings(again="data")), [30, 30, 50, 50], [30, 30, 50, 50]),
        # 2 participants x 3 steps / 3 clients = 2 steps per client and round.
        (Alone(AloneSettings()), [12, 24, 36, 48], [12, 24, 36, 48]),
    ],
)
@pytest.mark.parametrize("evaluate_every", [1, 4])
def test_one_adaptation_per_client_and_data_step_is_counted_whatever_is_evaluated(
    adaptation: Adaptation,
    samples: list[float],
    computed: list[float],
    evaluate_every: int,
) -> None:
    adaptation = type(adaptation)(adaptation.settings)  # fresh
    records = played(adaptation, evaluate_every=evaluate_every).records
    assert [record.adaptation_samples for record in records] == samples
    assert [record.adaptation_s for record in records] == pytest.approx(computed)


@pytest.mark.parametrize(
    ("evaluate_every", "samples"), [(1, [30, 60, 90, 120]), (2, [0, 30, 30, 60]), (3, [0, 0, 30, 60])]
)
def test_a_copy_for_each_evaluation_is_charged_at_each_one(evaluate_every: int, samples: list[float]) -> None:
    """3 clients, 5 steps of 2 samples; the last round is evaluated."""
    adaptation = Tuned(TunedSettings())
    records = played(adaptation, evaluate_every=evaluate_every).records
    assert [record.adaptation_samples for record in records] == samples


@pytest.mark.parametrize(("evaluate_every", "passes"), [(1, [1, 2, 3, 4]), (2, [0, 1, 1, 2])])
def test_a_forward_pass_for_each_evaluation_is_charged_at_each_one(
    evaluate_every: int, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 4 + 8 + 4 samples, of which each takes a third of the time of training on one: 1 s."""
    monkeypatch.setattr(Relabelled, "adapt", lambda self, view: Served(view.models, view.plan))
    records = played(Relabelled(RelabelledSettings()), evaluate_every=evaluate_every).records
    assert [record.adaptation_s for record in records] == pytest.approx([16 / 3 * n for n in passes])
    assert not any(record.adaptation_samples for record in records)


def test_a_kept_copy_is_of_the_model_at_the_first_evaluation_after_the_data_changed() -> None:
    """Client 1's data never change: at the second data step, from round 2 on, it still has its first copy."""
    anew, kept = played(Tuned(TunedSettings())), played(Tuned(TunedSettings(again="data")))
    assert kept.models == anew.models
    copies = [models[:, 0].tolist() for models, _ in anew.executor.evaluated]
    (first, _, third, _), one = copies, [models[:, 0].tolist() for models, _ in kept.executor.evaluated]
    assert len({row[1] for row in copies}) == 4
    assert one == [first, first, [third[0], first[1], third[2]], [third[0], first[1], third[2]]]


def test_tuning_at_rate_0_and_a_plan_that_is_read_as_it_is_are_no_adaptation() -> None:
    reader, rate_0 = FakeReader(), Tuned(TunedSettings(learning_rate=0.0))
    trainer = executor(reader)
    bank = ModelBank(trainer.num_parameters)
    bank.parameters, bank.ids = np.stack([trainer.initial(n) for n in range(2)]), np.arange(2)
    plan = InferencePlan.alike(np.arange(4)[:, None] % 2)
    samples = SampleRanges.one_each(np.arange(4) * 50, np.arange(4) * 50 + 30)
    plain = trainer.evaluate(bank.parameters, plan, samples)
    stream = Windows(4)
    stream.step = 0
    adapted = adapts(rate_0, trainer, stream, bank).evaluate(0, plan, np.arange(4), samples)
    assert adapted.accuracy.tolist() == plain.accuracy.tolist()
    np.testing.assert_allclose(adapted.loss, plain.loss, rtol=1e-6)  # models of their own are batched


# -- alone --------------------------------------------------------------------------------------------------


def test_alone_has_the_rounds_of_one_model_and_neither_bytes_nor_a_server_step() -> None:
    plain, alone = played(NoAdaptation(NOTHING)), played(Alone(AloneSettings()))
    moved = ("download_bytes", "upload_bytes", "models_sent", "train_loss")
    assert without(alone.records, *OF_ADAPTATIONS, *moved) == without(plain.records, *OF_ADAPTATIONS, *moved)
    assert {(r.download_bytes, r.upload_bytes, r.models_sent, r.train_loss) for r in alone.records} == {
        (0.0, 0.0, 0.0, None)
    }
    assert alone.models == [[0.0]]
    assert all((wave.model >= ADAPTED_AFTER).all() for wave in alone.executor.waves)


@pytest.mark.parametrize(
    ("times", "last", "samples"), [(1, "filled", 168), (1, "short", 128), (10, "short", 1280)]
)
def test_alone_takes_as_many_epochs_per_client_as_a_federation(times: int, last: str, samples: int) -> None:
    """2 participants x 3 epochs / 3 clients: 2 epochs of each per round, of ceil(4 / 3) or ceil(8 / 3) steps.

    In filled batches of 3 that are 56 steps in four rounds, in short ones 8 passes over 16 samples.
    """
    settings = {"local_epochs": 3, "batch_size": 3, "last": last, "evaluate_every": 4}
    alone = played(Alone(AloneSettings(times=times)), **settings)
    steps = np.zeros(3)
    for wave in alone.executor.waves:
        steps[wave.client] += wave.settings["local_steps"]
    assert steps.tolist() == [16 * times, 24 * times, 16 * times]
    assert alone.records[-1].adaptation_samples == samples


def test_clients_that_are_offline_train_alone() -> None:
    away = FakeAvailability({1: [(0.0, 1.0)]})
    alone = played(Alone(AloneSettings()), availability=away, evaluate_every=4)
    assert all(1 not in record.completed for record in alone.records)
    assert 1 in alone.executor.waves[-1].client


class Windows:
    """A stream in which client c holds rows 40 c + 10 t to 40 c + 10 t + 10 at data step t."""

    num_labels = 4

    def __init__(self, num_clients: int) -> None:
        self.num_clients = num_clients
        self.step = -1
        self.holding = np.ones(num_clients, dtype=bool)

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        first = 40 * ids + 10 * self.step
        return SampleRanges.one_each(first, first + 10)

    def label_histograms(self, ids: Ints) -> Floats:
        return np.full((len(ids), 4), 0.25)


def adapts(adaptation: Adaptation, trainer: LocalExecutor, stream: Windows, bank: ModelBank) -> Adapting:
    return Adapting(
        adaptation,
        stream=stream,
        bank=bank,
        executor=trainer,
        latency=DriftscaleLatency(a_fleet(stream.num_clients)),
        settings=RoundSettings(rounds=6, local_steps=4, batch_size=4, learning_rate=0.1),
        participants=2,
        scored=np.arange(stream.num_clients),
        reports=Reports(stream.num_clients, 4),
    )


class Wide(LocalExecutor):
    """Trains in float64, one client after the other."""

    def initial(self, number: int) -> Floats32:
        return super().initial(number).astype(np.float64)

    def evaluate(self, *arguments: object) -> Evaluation:
        return Evaluation(np.zeros(3), np.zeros(3))

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        wave = Wave(tasks, models, start, self.reader, self._streams, torch.float64)
        delta = np.zeros_like(models[start])
        for members in wave.cut(1):
            if wave.steps[members].all():
                group = wave.group(members)
                delta[members] = ReferenceLoop(self._model, self._chain).train(group).parameters - group.start
        return ArrayUpdates(tasks.client, tasks.model, tasks.samples.counts(), wave.steps, delta)


def six_rounds(rounds: Adapting, stream: Windows, evaluate_every: int) -> dict[int, bytes]:
    """The losses of the clients after rounds that are evaluated; the fourth round begins a data step."""
    everyone, losses = np.arange(stream.num_clients), {}
    serving = InferencePlan.alike(np.zeros((stream.num_clients, 1), dtype=np.int64))
    for round_ in range(6):
        if round_ % 3 == 0:
            before, step = stream.held(everyone, "train"), stream.step
            stream.step += 1
            if step >= 0:
                rounds.data_changes(round_, everyone, before, step)
        if (round_ + 1) % evaluate_every == 0:
            evaluation = rounds.evaluate(round_, serving, everyone, stream.held(everyone, "test"))
            losses[round_] = evaluation.loss.tobytes()
    return losses


@pytest.mark.parametrize("evaluate_every", [1, 2, 6])
def test_alone_is_the_plain_loop_of_each_client(evaluate_every: int) -> None:
    """However often clients are evaluated.

    A federation of 2 of 3 clients with 4 steps takes 8/3 steps per client and round: 2, 5, 8, 10, 13 and 16
    after each round.
    """
    reader, streams, stream = FakeReader(), RandomStreams(3), Windows(3)
    trainer = executor(reader)
    trainer.__class__ = Wide
    alone, bank = Alone(AloneSettings()), ModelBank(trainer.num_parameters)
    bank.parameters = np.zeros((1, trainer.num_parameters))
    six_rounds(adapts(alone, trainer, stream, bank), stream, evaluate_every)

    def step(model: Floats, rows: Ints) -> Floats:
        """One step of softmax regression, by its gradient."""
        weights, bias = model[:24].reshape(4, 6), model[24:]
        x, y = reader.x[rows].astype(np.float64), np.eye(4)[reader.y[rows]]
        raised = np.exp(x @ weights.T + bias)
        slope = (raised / raised.sum(axis=1, keepdims=True) - y) / len(rows)
        return model - 0.1 * np.concatenate([(slope.T @ x).ravel(), slope.sum(axis=0)])

    for client in range(3):
        model = trainer.initial(0).astype(np.float64)
        for taken, window in ((0, 0), (4, 0), (8, 1), (12, 1)):  # visits of four steps
            first = np.array([40 * client + 10 * window])
            tasks = TrainTasks(
                client=np.array([client]),
                model=np.array([ADAPTED_AFTER + taken]),
                visit=np.array([-1]),
                samples=SampleRanges.one_each(first, first + 10),
                settings={"batch_size": np.array([4.0])},
                dispatch=np.array([0]),
                step=np.array([0]),
            )
            for (rows,) in task_batches(tasks, np.array([0]), np.array([4]), streams):
                model = step(model, rows)
        assert alone._models is not None
        np.testing.assert_allclose(alone._models[client], model, rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", [rule("sgd", momentum=0.9), rule("adam"), rule("adam", keep="step")])
def test_how_often_clients_alone_are_evaluated_changes_nothing(solver: Any) -> None:
    """Also where a rule begins anew at each visit."""

    def losses(evaluate_every: int) -> dict[int, bytes]:
        stream, trainer = Windows(3), executor(FakeReader(), rules=[solver])
        rounds = adapts(Alone(AloneSettings()), trainer, stream, ModelBank(trainer.num_parameters))
        return six_rounds(rounds, stream, evaluate_every)

    often, seldom = losses(1), losses(2)
    assert list(seldom) == [1, 3, 5]
    assert {round_: often[round_] for round_ in seldom} == seldom


# -- reports ------------------------------------------------------------------------------------------------


class Told(Prior):
    """A prior that keeps what it was told of the shares of each model."""

    def __init__(self) -> None:
        super().__init__(PriorSettings(shares="reported"))
        self.shares: list[list[list[float]]] = []

    def adapt(self, view: ClientView) -> Served:
        self.shares.append(view.reported_shares().round(6).tolist())
        return super().adapt(view)


def test_shares_are_those_that_the_coordinator_holds_and_are_paid_for() -> None:
    """Client 0 is away from 17.5 s on: what it holds from 18 s on, at the second step, is not known."""
    prior = Told()
    away = FakeAvailability({0: [(0.0, 17.5)]})
    records = played(prior, availability=away, local_steps=1, batch_size=1, participants=3).records
    assert [record.reported for record in records] == [3, 0, 1, 0]
    assert [record.control_bytes for record in records] == [24, 24, 32, 32]
    assert prior.shares == [[[0.5, 0.5]]] * 2 + [[[0.833333, 0.166667]]] * 2


def test_an_arm_that_reports_something_else_reports_its_shares_of_labels_besides() -> None:
    """At the second step clients 0 and 2 report two numbers of 4 bytes more than without a prior."""

    def arm(adaptation: Adaptation) -> tuple[list[RoundRecord], FakeClusterer]:
        clusterer = FakeClusterer({0: fresh([0] * 3)}, reports=True)
        representation = Gradient(GradientSettings(at="global"))
        run = played(adaptation, clusterer=clusterer, representation=representation)
        return run.records, clusterer

    prior = Told()
    (plain, without_prior), (paid, with_prior) = arm(NoAdaptation(NOTHING)), arm(prior)
    more = [ours.control_bytes - theirs.control_bytes for ours, theirs in zip(paid, plain, strict=True)]
    assert more == [24, 24, 40, 40]
    assert [ours.reported - theirs.reported for ours, theirs in zip(paid, plain, strict=True)] == [3, 0, 2, 0]
    assert prior.shares == [[[0.5, 0.5]]] * 4
    for ours, theirs in zip(with_prior.views, without_prior.views, strict=True):
        np.testing.assert_array_equal(ours.reports, theirs.reports)


@pytest.mark.parametrize("hear", ["online", "everyone"])
def test_a_prior_hears_as_round_hear_says_whatever_the_clusterer_asks(hear: Hear) -> None:
    """A clusterer that sends requests hears those alone that are online; client 0 is not, after 17.5 s."""

    class Asking(FakeClusterer):
        watches_data = True

    prior = Told()
    away = FakeAvailability({0: [(0.0, 17.5)]})
    settings: dict[str, Any] = {"availability": away, "local_steps": 1, "batch_size": 1, "participants": 3}
    records = played(prior, clusterer=Asking({0: fresh([0] * 3)}), hear=hear, **settings).records
    assert [record.reported for record in records] == [3, 0, 2 if hear == "everyone" else 1, 0]


def test_no_reference_model_is_sent_for_shares_of_labels() -> None:
    """A reference model of one number, 4 bytes, is sent to each client once, for its embedding."""
    reference = Reference(FakeExecutor([0.0]), np.zeros(1, dtype=np.float32), np.array([1, 1]), 1.0)

    def control_bytes(adaptation: Adaptation) -> float:
        clusterer = FakeClusterer({0: fresh([0] * 3)}, reports=True)
        representation = Embedding(ReferenceSettings())
        arm = {"clusterer": clusterer, "representation": representation, "reference": reference}
        return played(adaptation, **arm).records[0].control_bytes

    assert control_bytes(Told()) - control_bytes(NoAdaptation(NOTHING)) == 3 * 2 * 4


def test_an_arm_that_reports_labels_anyway_pays_nothing_more() -> None:
    def control_bytes(adaptation: Adaptation) -> list[float]:
        clusterer = FakeClusterer({0: fresh([0, 0, 1])}, reports=True)
        return [record.control_bytes for record in played(adaptation, clusterer=clusterer).records]

    prior = Told()
    assert control_bytes(prior) == control_bytes(NoAdaptation(NOTHING)) == [24, 24, 40, 40]
    assert prior.shares == [[[0.75, 0.25], [0.0, 1.0]]] * 2 + [[[0.25, 0.75], [1.0, 0.0]]] * 2


# -- refused, and in blocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["drop", "stop"])
def test_a_client_whose_copy_is_not_finite_keeps_its_model_and_is_counted(policy: str) -> None:
    class Diverging(FakeExecutor):
        def train(self, tasks: TrainTasks, *arguments: Any) -> ArrayUpdates:
            trained = super().train(tasks, *arguments)
            trained.delta[(tasks.model == ADAPTED) & (tasks.client == 1)] = np.nan
            return trained

    population = Population(
        Diverging([0.0, 0.25, 0.5]),
        adaptation=Tuned(TunedSettings()),
        rounds=2,
        nonfinite_updates=policy,
    )
    if policy == "stop":
        problem = "round 0: the model that client 1 trains for its adaptation Tuned is not finite .1 of 3"
        with pytest.raises(RunError, match=problem):
            population.play()
        return
    done = population.play()
    assert [record.nonfinite_copies for record in done.records] == [1, 1]
    served, _ = done.executor.evaluated[-1]
    assert served[1, 0] == np.float32(done.models[0][0])
    assert served[0, 0] != served[1, 0]


def test_a_copy_whose_solver_state_is_not_finite_is_not_used_either() -> None:
    class Overflowing(FakeExecutor):
        def __init__(self, targets: list[float]) -> None:
            super().__init__(targets)
            self.solver = SolverFacts(state={"slot": StateSpec("scalar")})

        def train(self, tasks: TrainTasks, *arguments: Any) -> ArrayUpdates:
            trained = super().train(tasks, *arguments)
            trained.state["slot"][tasks.client == 1] = np.inf
            return trained

    done = Population(Overflowing([0.0, 0.25, 0.5]), adaptation=Alone(AloneSettings()), rounds=2).play()
    assert [record.nonfinite_copies for record in done.records] == [1, 1]


def test_a_plan_of_several_models_cannot_be_tuned() -> None:
    class Both(FakeClusterer):
        def serve(self, view: View) -> InferencePlan:
            return InferencePlan.alike(np.tile([0, 1], (view.num_clients, 1)))

    with pytest.raises(RunError, match="round 0: Tuned adapts one model, and the clusterer combines several"):
        played(Tuned(TunedSettings()), clusterer=Both({0: fresh([0, 0, 1])}))


def test_clients_are_adapted_in_blocks_without_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = played(Tuned(TunedSettings())).records
    monkeypatch.setattr(adapting, "AT_ONCE", 1)
    split = played(Tuned(TunedSettings()))
    assert split.records == whole
    assert [len(wave.client) for wave in split.executor.waves if (wave.model == ADAPTED).all()] == [1] * 12
