"""Tasks, requests, arrivals and tests are read in the ways of their clients, and ways in use are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.adaptations import Adaptation, ClientView, Served
from coordinator.adaptations.none import NoAdaptation
from coordinator.detectors.stepd import Stepd
from coordinator.federation.bank import ModelBank
from coordinator.federation.evaluation.adapting import Adapting
from coordinator.federation.hearing import Reports
from coordinator.federation.method import RoundSettings
from coordinator.federation.training.reading import Reading
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.schedules.slowness import Slowness
from emulator.arrays import NO_IDS, Floats, Floats32, Ints
from emulator.latency import DriftscaleLatency
from emulator.messages import Evaluation, InferencePlan, SampleRanges, Work
from tests.fakes import NOTHING, FakeExecutor, FakeSamples, FakeStream, Population, a_fleet, ints
from traces.ways import Ways

N = 100
"""Rows of the table: of three clients, of whom each holds two training samples, in rows 0 to 5."""

START = np.array([[0.0], [0.5]], dtype=np.float32)


class Numbered(Adaptation):
    """Has each client read in way (its id, the model's first parameter), which is added to features.

    To choose it takes a prediction of each sample, and to report it 8 bytes.
    """

    reads = True
    hears = True
    serves_one = True

    def __init__(self, trains: bool = True) -> None:
        super().__init__(NOTHING)
        self._trains = trains
        self.reported: list[list[int]] = []
        self.rounds: list[int] = []

    @property
    def trains(self) -> bool:
        return self._trains

    def adapt(self, view: ClientView) -> Served:
        self.rounds.append(view.rounds)
        models = view.models[view.plan.models, 0].astype(np.float64)
        clients = np.broadcast_to(view.clients[:, None], models.shape)
        return Served(view.models, view.plan, np.stack([clients, models], axis=2))

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        more = np.nan_to_num(ways.sum(axis=1, keepdims=True)) if ways.shape[1] else np.zeros((len(ways), 1))
        return features + more.astype(np.float32)

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        self.reported.append(view.clients.tolist())
        return Work.of(len(view.clients), upload_bytes=8.0)

    def choosing_work(self, view: ClientView) -> Work | None:
        return Work.of(len(view.clients), forward_samples=view.num_samples.astype(np.float64))


class Downloading(Numbered):
    """To choose it is sent 8 bytes, too."""

    def choosing_work(self, view: ClientView) -> Work | None:
        return Work.of(len(view.clients), download_bytes=8.0, forward_samples=view.num_samples.astype(float))


class Swapping(Adaptation):
    """Every client but client 0 reads its labels the other way round."""

    hears = True
    trains = True

    def adapt(self, view: ClientView) -> Served:
        outputs = np.where((view.clients > 0)[:, None, None], [[1, 0]], [[0, 1]])
        return Served(view.models, replace(view.plan, outputs=outputs))


class World:
    """Three clients with targets 0, 1/4 and 1/2, and the reading of their samples."""

    def __init__(self, adaptation: Adaptation) -> None:
        stream = FakeStream(np.ones((1, 3, 2)) / 2, train=[2, 2, 2])
        self.executor = FakeExecutor([0, 0.25, 0.5])
        stream.advance_to_round(0)
        self.ways = Ways(FakeSamples(N, num_labels=2), adaptation.read)
        self.in_flight: Ints = NO_IDS
        adapting = Adapting(
            adaptation,
            stream=stream,
            bank=ModelBank(1),
            executor=self.executor,
            latency=DriftscaleLatency(a_fleet(3)),
            settings=RoundSettings(rounds=4, local_steps=1, batch_size=1, learning_rate=0.1),
            participants=2,
            scored=np.arange(3),
            reports=Reports(3, 2),
            ways=self.ways,
        )
        self.held = stream.held
        self.reading = Reading(
            adapting, self.ways, stream=stream, executor=self.executor, in_flight=[lambda: self.in_flight]
        )

    def tasks(self, *clients: int, start: Ints, sent_out: bool = True) -> tuple[SampleRanges, Work | None]:
        held, ids = self.held(ints(*clients), "train"), ints(*clients)
        return self.reading.of_tasks(3, ids, START, start, held, sent_out=sent_out)

    def read(self, samples: SampleRanges) -> list[list[float]]:
        return [self.ways.features(samples.rows(row))[:, 0].tolist() for row in range(len(samples))]


def test_without_an_adaptation_that_has_ways_samples_stay_what_they_are() -> None:
    stream, executor = FakeStream(np.ones((1, 3, 1))), FakeExecutor([0, 1, 0])
    reading = Reading(None, None, stream=stream, executor=executor)
    samples = SampleRanges.one_each(ints(4), ints(7))
    assert reading.of_tasks(0, ints(1), START, ints(0), samples) == (samples, None)
    assert reading.shift_of(samples).tolist() == [0]
    scores, work = reading.score(0, ints(1), START, samples, frozenset({"correct"}))
    assert work is None
    assert executor.scored[0][1] is samples
    assert scores.correct is not None
    assert scores.correct.shape == (1, 2)


def test_each_task_is_read_in_the_way_of_its_client_for_the_model_that_it_receives() -> None:
    """Client 1 has two tasks, of both models."""
    world = World(Numbered())
    samples, _ = world.tasks(0, 1, 1, start=ints(0, 0, 1))
    assert world.read(samples) == [[0, 1], [2 + 1, 3 + 1], [2 + 1.5, 3 + 1.5]]
    assert samples.first.tolist() == [N, 2 * N + 2, 3 * N + 2]
    assert samples.counts().tolist() == [2, 2, 2]
    assert world.reading.shift_of(samples).tolist() == [N, 2 * N, 3 * N]


def test_a_task_may_have_other_samples_than_its_client_holds_now() -> None:
    """As a memory has them: the way is chosen on what the client holds, and all samples are read in it."""
    world = World(Numbered())
    older, newer = (SampleRanges.one_each(ints(row, 9), ints(row + 1, 9)) for row in (50, 70))
    both = SampleRanges.joined([older, newer])
    samples, work = world.reading.of_tasks(3, ints(1, 2), START, ints(1, 1), both)
    assert world.read(samples) == [[50 + 1.5, 70 + 1.5], []]
    assert work is not None
    assert work.forward_samples.tolist() == [2, 2]
    assert world.reading.shift_of(samples).tolist() == [N, 0]


def test_choosing_and_reporting_are_charged_and_a_request_reports_nothing() -> None:
    adaptation = Numbered()
    world = World(adaptation)
    _, work = world.tasks(0, 2, start=ints(0, 0))
    _, of_request = world.tasks(1, start=ints(0), sent_out=False)
    assert adaptation.reported == [[0, 2]]
    assert adaptation.rounds == [3, 3]
    assert work is not None
    assert of_request is not None
    assert (work.forward_samples.tolist(), work.upload_bytes.tolist()) == ([2, 2], [8, 8])
    assert (of_request.forward_samples.tolist(), of_request.upload_bytes.tolist()) == ([2], [0])


def test_a_client_with_several_tasks_reports_and_is_sent_the_sums_of_others_once() -> None:
    adaptation = Downloading()
    _, work = World(adaptation).tasks(0, 1, 1, start=ints(0, 0, 1))
    assert adaptation.reported == [[0, 1]]
    assert work is not None
    assert work.upload_bytes.tolist() == work.download_bytes.tolist() == [8, 8, 0]
    assert work.forward_samples.tolist() == [2, 2, 2]


def test_an_adaptation_that_hears_and_does_not_train_is_asked_and_charged_and_reads_plain() -> None:
    adaptation = Numbered(trains=False)
    world = World(adaptation)
    samples, work = world.tasks(1, start=ints(0))
    assert world.read(samples) == [[2, 3]]
    assert adaptation.reported == [[1]]
    assert work is not None
    assert work.upload_bytes.tolist() == [8]
    assert world.ways.num_known == 0


def test_nobody_is_asked_for_no_tasks() -> None:
    adaptation = Numbered()
    world, none = World(adaptation), SampleRanges.one_each(NO_IDS, NO_IDS)
    assert world.reading.of_tasks(3, NO_IDS, START, NO_IDS, none) == (none, None)
    assert world.reading.score(3, NO_IDS, START, none, frozenset({"loss"}))[1] is None
    assert adaptation.rounds == []
    assert world.reading.shift_of(none).tolist() == []


def test_labels_are_read_as_outputs_have_them() -> None:
    world = World(Swapping(NOTHING))
    samples, work = world.tasks(0, 1, start=ints(0, 0))
    assert [world.ways.labels(samples.rows(row)).tolist() for row in (0, 1)] == [[0, 1], [1, 0]]
    assert world.read(samples) == [[0, 1], [2, 3]]
    assert work is not None
    assert not np.concatenate(list(vars(work).values())).any()


def test_ways_of_visits_in_flight_are_kept_and_all_others_forgotten() -> None:
    world = World(Numbered())
    first, _ = world.tasks(0, 1, start=ints(0, 1))
    world.in_flight = first.first[1:]  # that of client 0 is over
    second, _ = world.tasks(2, start=ints(0))
    assert world.ways.num_known == 2
    assert world.read(first.take(ints(1))) + world.read(second) == [[2 + 1.5, 3 + 1.5], [4 + 2, 5 + 2]]
    with pytest.raises(KeyError, match="are not known"):
        world.read(first)
    world.in_flight = second.first
    world.tasks(0, start=ints(0))
    assert world.ways.num_known == 2
    with pytest.raises(KeyError, match="are not known"):
        world.read(first.take(ints(1)))


def test_a_request_scores_each_model_in_the_way_of_each_client_for_it() -> None:
    """The fake takes a row's target from row % 3; N = 100 moves it on by 1 with each way."""
    world, metrics = World(Numbered()), frozenset({"correct", "loss"})
    held = world.held(ints(0, 2), "train")
    scores, work = world.reading.score(3, ints(0, 2), START, held, metrics)
    scored = [(models.tolist(), samples.first.tolist()) for models, samples in world.executor.scored]
    assert scored == [([[start]], [N + 0, 2 * N + 4]) for start in (0.0, 0.5)]
    assert scores.correct is not None
    # Client 0: rows 100 and 101, of targets 1/4 and 1/2; client 2: rows 204 and 205, of 0 and 1/4.
    assert scores.correct.tolist() == [[1.25, 1.75], [1.75, 1.25]]
    assert scores.counts.tolist() == [2, 2]
    assert scores.loss is not None
    assert scores.loss.shape == (2, 2)
    assert scores.confusion is None
    assert work is not None
    assert work.forward_samples.tolist() == [2, 2]
    assert world.ways.num_known == 0


# -- in a run ------------------------------------------------------------------------------------------------


class Recording(FakeExecutor):
    """Records in which ways it evaluates clients."""

    def __init__(self) -> None:
        super().__init__([0.0, 0.25, 0.5])
        self.ways_of_tests: list[list[int]] = []

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        self.ways_of_tests.append((samples.first // N).tolist())
        return super().evaluate(models, plan, samples)


def played(adaptation: Adaptation, **settings: Any) -> tuple[Any, Ways]:
    ways = Ways(FakeSamples(N, num_labels=2), adaptation.read)
    stream = FakeStream(np.ones((1, 3, 2)) / 2, train=[2, 2, 2])
    executor = Recording()
    population = Population(executor, stream=stream, adaptation=adaptation, ways=ways, **settings)
    return population.play(), ways


def test_a_run_trains_and_scores_arrivals_in_the_ways_of_its_clients() -> None:
    """Of 2 rounds of 3 clients, of whom each scores what has arrived, before the first, as its task reads."""
    adaptation = Numbered()
    news = {"news": Stepd(Stepd.Settings())}
    run, ways = played(adaptation, rounds=2, detectors=news, schedules=(Slowness(NOTHING),))
    assert [(wave.samples.first // N).tolist() for wave in run.executor.waves] == [[1, 2, 3], [4, 5, 6]]
    assert [(samples.first // N).tolist() for _, samples in run.executor.scored] == [[1, 2, 3]]
    assert adaptation.reported == [[0, 1, 2]] * 2
    assert ways.num_known == 3


@pytest.mark.parametrize(("trains", "of_trained"), [(True, [1, 2, 3]), (False, [0, 0, 0])])
def test_tests_are_read_in_ways_too_and_after_training_in_those_of_the_task(
    trains: bool, of_trained: list[int]
) -> None:
    """First what clients have just trained is evaluated, then the model of the round, in new ways."""
    run, _ = played(Numbered(trains), rounds=1, accuracies=frozenset({"trained"}))
    first = max(of_trained) + 1
    assert run.executor.ways_of_tests == [of_trained, [first, first + 1, first + 2]]


def test_what_choosing_costs_lengthens_a_visit_and_reports_are_control_traffic() -> None:
    """A visit takes 4 s of download, 1 s of training, and 4 s of upload for 4 bytes.

    With a way, it predicts 2 samples in a third of a second each, and reports 8 bytes more, in 8 s.
    """
    runs = [played(of, rounds=1)[0] for of in (NoAdaptation(NOTHING), Numbered())]
    (plain,), (record,) = (run.records for run in runs)
    assert plain.closed_s - plain.opened_s == 9
    assert record.closed_s - record.opened_s == pytest.approx(9 + 2 / 3 + 8)
    assert record.control_bytes - plain.control_bytes == 3 * 8
    assert record.upload_bytes == plain.upload_bytes
    assert record.download_bytes == plain.download_bytes
    sent = [run.coordinator.federation.ledger.models_sent for run in runs]
    assert sent[0] == sent[1] == 2 * 3


def test_ways_of_late_visits_are_those_at_dispatch() -> None:
    """With a buffer of 1 each step takes one visit. That of client 1, the second, is overtaken by others."""
    pacing = lambda cohort: Buffered(BufferedSettings(buffer=1, concurrency=3), cohort)  # noqa: E731
    run, ways = played(Numbered(), rounds=6, pacing=pacing, participants=1, fleet=a_fleet(3, [1, 20, 1]))
    taken = [(int(wave.samples.first[0] // N), int(wave.client[0])) for wave in run.executor.waves]
    assert all(wave.samples.first[0] % N == 2 * wave.client[0] for wave in run.executor.waves)
    assert (2, 1) in taken[3:]
    assert len({way for way, _ in taken}) == len(taken)
    assert ways.num_known == 3
