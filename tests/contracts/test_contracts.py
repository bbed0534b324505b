"""The contracts refuse parts that break a rule."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from pydantic import Field, field_serializer, field_validator, model_validator

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.median import Median
from coordinator.candidates import Candidates
from coordinator.clusterers.single import Single
from coordinator.detectors.changed import Changed
from coordinator.detectors.stepd import Stepd, StepdSettings
from coordinator.memories.held import Held, HeldSettings
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.schedules import Schedule
from coordinator.selectors.random import Random
from device_profiles import Fleet
from emulator.arrays import Ints
from emulator.numbers import Share
from emulator.plugins import NoSettings, Settings
from experiments import contracts
from tests.fakes import NOTHING, FakeAvailability
from traces.drift.buckets import Buckets, BucketsSettings
from traces.drift.label_mix import LabelMix, LabelMixSettings
from traces.partitions.sizes import Iid
from traces.tables.sorted import SortedTable


def test_a_part_without_a_docstring_is_refused():
    class Mute(Single):
        pass

    with pytest.raises(AssertionError, match="Mute has no docstring"):
        contracts.check_part(Mute, NOTHING)


def test_settings_that_can_be_changed_are_refused():
    class Soft(NoSettings, frozen=False):
        pass

    class Part(Single):
        """A part."""

        Settings = Soft

    with pytest.raises(AssertionError, match="not frozen"):
        contracts.check_part(Part, Soft())


def test_a_part_without_an_attribute_that_its_kind_declares_is_refused():
    class Aimless(Schedule):
        """Sets nothing."""

    with pytest.raises(AssertionError, match="Aimless lacks what every part of its kind defines: sets"):
        contracts.check_part(Aimless, NOTHING)


class Undescribed(Settings):
    """Settings without a description of one of them."""

    weight: Share = 0.5


class Careless(Settings):
    """Settings whose validator fails for values other than strings."""

    name: str = Field("a", description="a name")

    @field_validator("name", mode="before")
    @classmethod
    def _in_small_letters(cls, name):
        return name.lower()


class Broken(Settings):
    """Settings that read back as other settings."""

    name: str = Field("a", description="a name")

    @field_serializer("name")
    def _doubled(self, name):
        return 2 * name


class Lax(Settings, extra="ignore"):
    """Settings that accept unknown keys."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values):
        return values


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        (Undescribed, "Undescribed: weight has no description"),
        (Careless, "Careless refuses .* with a AttributeError"),
        (Broken, "reads back as something else"),
        (Lax, "accepts an unknown key"),
    ],
)
def test_settings_that_break_a_rule_are_refused(declared, complaint):
    class Part(Single):
        """A part."""

        Settings = declared

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_part(Part, declared())


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [(None, "has no class Settings"), (dict, "is not a subclass of emulator.plugins.Settings")],
)
def test_a_part_without_settings_of_the_right_kind_is_refused(declared, complaint):
    class Part(Single):
        """A part."""

        Settings = declared

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_part(Part, NOTHING)


def _all_of(candidates: Candidates) -> Ints:
    return np.concatenate([candidates.ids(lane) for lane in range(len(candidates))])


@pytest.mark.parametrize(
    ("pick", "complaint"),
    [
        (lambda candidates, wanted, rng: _all_of(candidates), "not ascending"),
        (lambda candidates, wanted, rng: np.sort(_all_of(candidates)), "participants by lane"),
        (lambda candidates, wanted, rng: np.arange(20, 20 + wanted.sum()), "not all of these"),
        (lambda candidates, wanted, rng: [1, 2], "participants are a list, not an array"),
        (
            lambda candidates, wanted, rng: np.sort(rng.choice(candidates.ids(0), size=wanted[0] and 1)),
            "differently",
        ),
    ],
    ids=["unsorted", "too many", "strangers", "a list", "random"],
)
def test_selectors_that_break_a_rule_are_refused(pick, complaint):
    rng = np.random.default_rng(5)

    class Picky(Random):
        def select(self, candidates, wanted, view):
            return pick(candidates, wanted, rng)

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_selector(lambda: Picky(NOTHING))


def test_detectors_that_write_to_the_last_report_are_refused():
    class Greedy(Changed):
        def detect(self, clients, signal, last):
            last[...] = signal
            return np.zeros(len(signal), dtype=bool)

    with pytest.raises(AssertionError, match="writes to its arguments"):
        contracts.check_detector(lambda: Greedy(NOTHING))


class Hasty(Stepd):
    """Flags every client."""

    def detect(self, clients, signal, last):
        super().detect(clients, signal, last)
        return np.ones(len(clients), dtype=bool)


class Mindful(Stepd):
    """Keeps what it was to forget."""

    def forget(self, clients):
        pass


class Needy(Stepd):
    """Watches arrivals, and needs a metric of training."""

    needs = frozenset({"batch_losses"})


class Sociable(Stepd):
    """Flags all clients of a call if it flags one."""

    def detect(self, clients, signal, last):
        flags = super().detect(clients, signal, last)
        return (flags | flags.any()) & (signal[:, 1] > 0)


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (Hasty, "flags a client for whom no samples have arrived"),
        (Mindful, "remembers something of clients that it was to forget"),
        (Needy, r"needs \['batch_losses'\]: it watches arrivals, and so needs no metric of training"),
        (Sociable, "a client's flags depend on the other clients"),
    ],
)
def test_detectors_of_arrivals_that_break_a_rule_are_refused(part, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_detector(lambda: part(StepdSettings()))


class Rates(Schedule):
    """A schedule of the settings that `decide` returns; it declares `sets`."""

    def __init__(self, decide, sets=frozenset({"learning_rate"})) -> None:
        self.decide = decide
        self.sets = sets

    def task_settings(self, client, model, base, view):
        return self.decide(base)


def decisions():
    rate = frozenset({"learning_rate"})
    rng = np.random.default_rng(2)
    return [
        pytest.param(dict, frozenset(), "must set at least one", id="nothing"),
        pytest.param(dict, frozenset({"momentum"}), "tasks have only", id="unknown"),
        pytest.param(dict, rate, "but declares sets", id="more than declared"),
        pytest.param(lambda base: {}, rate, "but declares sets", id="less than declared"),
        pytest.param(
            lambda base: {"learning_rate": base["learning_rate"] * 0}, rate, "above zero", id="zero"
        ),
        pytest.param(
            lambda base: {"learning_rate": base["learning_rate"] * np.inf}, rate, "above zero", id="endless"
        ),
        pytest.param(lambda base: {"learning_rate": np.ones(1)}, rate, "for each task", id="one for all"),
        pytest.param(lambda base: {"learning_rate": 0.1}, rate, "for each task", id="a number"),
        pytest.param(
            lambda base: {"learning_rate": np.ones(4)}, rate, "4 numbers for no tasks", id="always four"
        ),
        pytest.param(
            lambda base: {"learning_rate": np.multiply(base["learning_rate"], 2, out=base["learning_rate"])},
            rate,
            "writes to its arguments",
            id="in place",
        ),
        pytest.param(
            lambda base: {"learning_rate": base["learning_rate"] * rng.uniform(1, 2)},
            rate,
            "differently",
            id="random",
        ),
    ]


@pytest.mark.parametrize(("decide", "sets", "complaint"), decisions())
def test_schedules_that_break_a_rule_are_refused(decide, sets, complaint):
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_schedule(lambda: Rates(decide, sets))


class Peeking(Random):
    """Reads the true concepts in `select`."""

    def select(self, candidates, wanted, view):
        assert view.concepts is not None
        return super().select(candidates, wanted, view)


class PeekingSingle(Single):
    """Reads the true concepts in `on_updates`."""

    def on_updates(self, view):
        assert view.concepts is not None


class PeekingAtOnsets(Random):
    """Reads the true onsets in `select`."""

    def select(self, candidates, wanted, view):
        assert view.newest_onset is not None
        return super().select(candidates, wanted, view)


class PeekingHeld(Held):
    """Reads the true concepts in `rows`."""

    def rows(self, clients, view):
        assert view.concepts is not None
        return super().rows(clients, view)


class PeekingFedAvg(FedAvg):
    """Reads the true concepts in `aggregate`."""

    def aggregate(self, updates, view):
        assert view.concepts is not None
        return super().aggregate(updates, view)


class PeekingRates(Rates):
    """Reads the true concepts in `observe`."""

    def observe(self, view):
        assert view.concepts is not None


def the_base_rate(base):
    return {"learning_rate": base["learning_rate"]}


PEEKING = [
    pytest.param(contracts.check_selector, Peeking, NOTHING, id="selector"),
    pytest.param(contracts.check_selector, PeekingAtOnsets, NOTHING, id="onsets"),
    pytest.param(contracts.check_clusterer, PeekingSingle, NOTHING, id="clusterer"),
    pytest.param(contracts.check_memory, PeekingHeld, HeldSettings(), id="memory"),
    pytest.param(contracts.check_aggregator, PeekingFedAvg, FedAvgSettings(), id="aggregator"),
    pytest.param(contracts.check_schedule, PeekingRates, the_base_rate, id="schedule"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "part", "settings"), PEEKING)
def test_parts_that_read_the_truth_must_declare_it(check, part, settings):
    class Oracle(part):
        oracle = True

    with pytest.raises(AssertionError, match=f"{part.__name__} reads the true (concepts|onsets)"):
        check(lambda: part(settings))
    check(lambda: Oracle(settings))


class OneSpeed:
    """A profile of equal devices."""

    name, source = "one speed", "made up"
    reference_model = reference_flops = None

    def draw(self, num_clients, generator):
        return Fleet(*np.ones((4, num_clients)))


def test_a_device_profile_of_a_third_party_passes():
    contracts.check_device_profile(OneSpeed())


def drawing(part, method):
    """A subclass of `part` that draws from numpy's global generator in `method`, to no effect."""

    def drawn(self, *args, **kwargs):
        np.random.random()  # noqa: NPY002
        return getattr(super(Drawing, self), method)(*args, **kwargs)

    Drawing = type("Drawing", (part,), {method: drawn})  # noqa: N806
    return Drawing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "part", "method", "settings"),
    [
        (contracts.check_aggregator, FedAvg, "aggregate", FedAvgSettings()),
        (contracts.check_clusterer, Single, "serve", NOTHING),
        (contracts.check_detector, Changed, "detect", NOTHING),
        (contracts.check_drift, LabelMix, "shares", LabelMixSettings()),
        (contracts.check_memory, Held, "rows", HeldSettings()),
        (contracts.check_partition, Iid, "assign", NOTHING),
        (contracts.check_robust_aggregator, Median, "aggregate", NOTHING),
        (contracts.check_schedule, Rates, "observe", lambda base: {"learning_rate": base["learning_rate"]}),
        (contracts.check_selector, Random, "select", NOTHING),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_parts_that_draw_from_a_global_generator_are_refused(check, part, method, settings):
    drawn = drawing(part, method)
    with pytest.raises(AssertionError, match="global generator of numpy was drawn from or seeded"):
        check(lambda: drawn(settings))


@pytest.mark.slow
def test_surroundings_that_draw_from_a_global_generator_are_refused():
    with pytest.raises(AssertionError, match="global generator of numpy"):
        contracts.check_pacing(lambda cohort: drawing(Sync, "quota")(SyncSettings(), cohort))
    with pytest.raises(AssertionError, match="global generator of numpy"):
        contracts.check_availability(drawing(FakeAvailability, "online")(), 2, [0.0, 1.0])
    with pytest.raises(AssertionError, match="global generator of numpy"):
        contracts.check_device_profile(drawing(OneSpeed, "draw")())


def test_seeding_a_global_generator_with_its_last_seed_is_noticed():
    class Seeding(Changed):
        def detect(self, clients, signal, last):
            np.random.seed(7)  # noqa: NPY002
            return super().detect(clients, signal, last)

    for _ in range(2):
        with pytest.raises(AssertionError, match="global generator of numpy"):
            contracts.check_detector(lambda: Seeding(NOTHING))


def test_a_draw_by_an_import_is_not_a_breach():
    imported = []

    class Importing(Changed):
        def detect(self, clients, signal, last):
            if not imported:
                imported.append(random.random())
            return super().detect(clients, signal, last)

    contracts.check_detector(lambda: Importing(NOTHING))
    assert imported


def test_aggregators_that_touch_a_model_without_updates_are_refused():
    class Drag(FedAvg):
        def aggregate(self, updates, view):
            return super().aggregate(updates, view) * np.float32(0.9)

    with pytest.raises(AssertionError, match="must stay"):
        contracts.check_aggregator(lambda: Drag(FedAvgSettings()))


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        (lambda models: models[:-1], "models of shape"),
        (lambda models: models.astype(np.float64), "models are float64, not float32"),
    ],
    ids=["short", "double"],
)
def test_aggregators_that_make_models_of_another_form_are_refused(turn, complaint):
    class Turned(FedAvg):
        def aggregate(self, updates, view):
            return turn(super().aggregate(updates, view))

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_aggregator(lambda: Turned(FedAvgSettings()))


def test_random_aggregators_are_refused():
    rng = np.random.default_rng(1)

    class Noisy(FedAvg):
        def aggregate(self, updates, view):
            models = super().aggregate(updates, view)
            moved = np.isin(view.model_ids, updates.model)[:, None]
            return np.where(moved, models + np.float32(rng.random()), models)

    with pytest.raises(AssertionError, match="equal updates get different models"):
        contracts.check_aggregator(lambda: Noisy(FedAvgSettings()))


def test_aggregators_that_change_models_without_updates_are_refused():
    class Restless(FedAvg):
        def aggregate(self, updates, view):
            return super().aggregate(updates, view) if len(updates) else view.models + np.float32(1)

    with pytest.raises(AssertionError, match="without updates all models must stay"):
        contracts.check_aggregator(lambda: Restless(FedAvgSettings()))


def test_aggregators_that_use_other_weights_than_declared_are_refused():
    class Fickle(FedAvg):
        state_fields = ("_calls",)
        _calls = 0

        def weights(self, model, num_samples, view):
            self._calls += 1
            return super().weights(model, num_samples, view) / self._calls

        def aggregate(self, updates, view):
            self.weights(updates.model, updates.num_samples, view)
            return super().aggregate(updates, view)

    with pytest.raises(AssertionError, match="having declared"):
        contracts.check_aggregator(lambda: Fickle(FedAvgSettings()))


def test_aggregators_that_aggregate_in_place_are_refused():
    class InPlace(FedAvg):
        def aggregate(self, updates, view):
            view.models[...] = super().aggregate(updates, view)
            return view.models

    with pytest.raises(AssertionError, match="writes to its arguments"):
        contracts.check_aggregator(lambda: InPlace(FedAvgSettings()))


def test_pacings_with_a_quota_for_an_empty_lane_are_refused():
    class Even(Sync):
        def quota(self, sizes):
            return np.full_like(sizes, 2)

    with pytest.raises(AssertionError, match="must be 0 for a lane without clients"):
        contracts.check_pacing(lambda cohort: Even(SyncSettings(), cohort))


def test_pacings_that_open_visits_in_a_full_lane_are_refused():
    class Replacing(Sync):
        """Sends out others for those that dropped out."""

        whole_rounds = False
        counts_the_full = True

        def opens(self, quota, sizes, out, back):
            sent = [self.cohort.over_committed(int(count)) for count in quota]
            missing = np.maximum(np.minimum(sent, sizes) - out - back, 0)
            return missing if self.counts_the_full else np.where(back >= quota, 0, missing)

    class Careful(Replacing):
        counts_the_full = False

    contracts.check_pacing(lambda cohort: Careful(SyncSettings(), cohort))
    with pytest.raises(AssertionError, match="opens visits in a lane that is full"):
        contracts.check_pacing(lambda cohort: Replacing(SyncSettings(), cohort))


def test_pacings_that_never_close_a_round_are_refused():
    class Endless(Sync):
        def closes(self, absorbed, elapsed_s):
            return False

    with pytest.raises(AssertionError, match="never closes a round"):
        contracts.check_pacing(lambda cohort: Endless(SyncSettings(), cohort))


def test_availability_whose_next_change_is_now_is_refused():
    class Now(FakeAvailability):
        def next_online_s(self, ids, time_s):
            starts = [min((s for s, _ in self.intervals[c] if s >= time_s), default=np.inf) for c in ids]
            return np.array(starts)

    sessions = {client: [(10.0, 20.0), (30.0, 40.0)] for client in range(2)}
    contracts.check_availability(FakeAvailability(sessions), 2, [0.0, 10.0, 25.0])
    with pytest.raises(AssertionError, match="strictly later"):
        contracts.check_availability(Now(sessions), 2, [0.0, 10.0, 25.0])


def test_availability_with_a_cursor_is_refused():
    class Cursor(FakeAvailability):
        """A query moves a cursor, as in some emulators."""

        queries = 0

        def online(self, ids, time_s):
            self.queries += 1
            return np.full(len(ids), self.queries < 4)

    with pytest.raises(AssertionError, match="online depends on"):
        contracts.check_availability(Cursor({}), 1, [0.0, 1.0])


def test_drifts_whose_shares_do_not_sum_to_1_are_refused():
    class Lossy(LabelMix):
        def shares(self, *args, **kwargs):
            return (window * 0.99 for window in super().shares(*args, **kwargs))

    with pytest.raises(AssertionError, match=r"sum to 1, not to 0\.99"):
        contracts.check_drift(lambda: Lossy(LabelMixSettings()))


def test_populations_whose_samples_have_other_labels_than_their_images_are_refused():
    class Mislabelled(Buckets):
        def draw(self, images, context):
            return super().draw(replace(images, labels=images.labels[::-1]), context)

    with pytest.raises(AssertionError, match="a label is not its image's"):
        contracts.check_drift(lambda: Mislabelled(BucketsSettings()))


def test_populations_with_a_client_that_has_nothing_at_the_start_are_refused():
    class Tardy(Buckets):
        def draw(self, images, context):
            arrivals = super().draw(images, context).arrivals()
            late = (arrivals.client == 4) & (arrivals.split == 1)
            arrivals.arrival[late] = 1
            return SortedTable(arrivals, context.num_clients, context.scratch)

    with pytest.raises(AssertionError, match="a client has no test sample at step 0"):
        contracts.check_drift(lambda: Tardy(BucketsSettings()))


def test_populations_whose_samples_come_after_the_run_are_refused():
    class Late(Buckets):
        def draw(self, images, context):
            return super().draw(images, replace(context, num_steps=context.num_steps + 1))

    with pytest.raises(AssertionError, match="samples arrive after the last data step"):
        contracts.check_drift(lambda: Late(BucketsSettings()))


def wrong_partitions():
    def narrow(clients, samples):
        return clients.astype(np.int32)

    def few(clients, samples):
        return clients[:-1]

    def strangers(clients, samples):
        return clients + 1

    def beneath(clients, samples):
        return clients - 1

    def painting(clients, samples):
        samples.labels[0] += 1
        return clients

    return [
        (narrow, "clients are int32, not int64"),
        (few, "clients have shape"),
        (strangers, "client 20: must be below 20"),
        (beneath, "client -1: must be at least 0"),
        (painting, "writes to its arguments"),
    ]


@pytest.mark.parametrize(("turn", "complaint"), wrong_partitions())
def test_partitions_that_break_a_rule_are_refused(turn, complaint):
    class TurnedIid(Iid):
        def assign(self, samples, num_clients, generator):
            return turn(super().assign(samples, num_clients, generator), samples)

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_partition(lambda: TurnedIid(NOTHING))


def test_partitions_that_depend_on_earlier_ones_are_refused():
    class Moody(Iid):
        turns = 0

        def assign(self, samples, num_clients, generator):
            self.turns += 1
            return (super().assign(samples, num_clients, generator) + self.turns) % num_clients

    with pytest.raises(AssertionError, match="equal generators must give equal partitions"):
        contracts.check_partition(lambda: Moody(NOTHING))


@pytest.mark.slow
def test_the_cohort_a_pacing_is_made_for_is_handed_to_it():
    seen = []

    def make(cohort: CohortSize) -> Sync:
        seen.append(cohort)
        return Sync(SyncSettings(), cohort)

    contracts.check_pacing(make)
    assert {cohort.participants for cohort in seen} == {10}
