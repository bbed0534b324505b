"""The numbers of FedProx's generator, in its order: checked against a plain one, sample by sample."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from experiments.sameness import same
from tests.traces.tiny import context
from traces.arrivals import SPLITS
from traces.sources import synthetic
from traces.sources.synthetic import Synthetic, SyntheticSettings
from traces.trace import Trace, TraceStream


def build(rounds: int = 20, seed: int = 0, **settings: Any) -> Trace:
    source = Synthetic(SyntheticSettings.model_validate({"clients": 3, "rounds_per_step": 5, **settings}))
    return source.build(context(rounds, seed))


class Client(NamedTuple):
    features: Floats  # (n, 60)
    labels: Ints  # (n,)


def iid_by_hand(clients: int, seed: int) -> list[Client]:
    """The same of the published generator of IID data: one rule, and one distribution of features."""
    draw = np.random.RandomState(seed)
    sizes = [int(draw.lognormal(4, 2)) + 50 for _ in range(clients)]
    covariance = np.diag([(j + 1) ** -1.2 for j in range(60)])
    weights, biases = draw.normal(0, 1, (60, 10)), draw.normal(0, 1, 10)
    drawn = []
    for size in sizes:
        features = draw.multivariate_normal(np.zeros(60), covariance, size)
        drawn.append(Client(features, np.array([int(np.argmax(x @ weights + biases)) for x in features])))
    return drawn


def by_hand(clients: int, alpha: float, beta: float, seed: int) -> list[Client]:
    """The definition, one number or one client at a time, from the legacy generator of that seed."""
    draw = np.random.RandomState(seed)
    sizes = [int(draw.lognormal(4, 2)) + 50 for _ in range(clients)]
    weight_means = [draw.normal(0, alpha) for _ in range(clients)]
    feature_means = [draw.normal(0, beta) for _ in range(clients)]
    covariance = np.diag([(j + 1) ** -1.2 for j in range(60)])
    centres = [[draw.normal(mean, 1) for _ in range(60)] for mean in feature_means]
    drawn = []
    for size, mean, centre in zip(sizes, weight_means, centres, strict=True):
        weights = draw.normal(mean, 1, (60, 10))
        biases = draw.normal(mean, 1, 10)
        features = draw.multivariate_normal(centre, covariance, size)
        labels = [int(np.argmax(_softmax(sample @ weights + biases))) for sample in features]
        drawn.append(Client(features, np.array(labels)))
    return drawn


def _softmax(scores: Floats) -> Floats:
    powers = np.array([math.exp(score) for score in scores])
    return powers / powers.sum()


def held(trace: Trace, client: int, step: int = 0) -> Client:
    """The samples that the client holds, of both splits, in the order in which they were drawn."""
    rows = np.concatenate([trace.held(np.array([client]), split, step).rows(0) for split in SPLITS])
    rows = rows[np.argsort(trace.table.take("image", rows))]
    return Client(trace.features(rows), trace.labels(rows))


def test_the_sizes_of_seed_0_are_those_of_the_legacy_generator() -> None:
    trace = build(clients=30)
    sizes = np.bincount(trace.columns().client)
    assert sizes[:5].tolist() == [1909, 171, 436, 4876, 2337]
    # The first normal number of seed 0 is 1.764052...: exp(4 + 2 * 1.764052) = 1859.9.
    first = np.random.RandomState(0).standard_normal(5)
    assert first[0] == pytest.approx(1.764052345967664)
    assert [int(math.exp(4 + 2 * number)) + 50 for number in first] == sizes[:5].tolist()
    assert sizes.sum() == 22349
    assert sizes.min() >= 50


@pytest.mark.parametrize(
    ("alpha", "beta", "seed"), [(0.5, 0.5, 0), (1.0, 1.0, 3), (0.0, 0.0, 0), (0.2, 2, 7)]
)
def test_samples_are_those_of_the_definition(alpha: float, beta: float, seed: int) -> None:
    trace = build(alpha=alpha, beta=beta, data_seed=seed)
    for client, expected in enumerate(by_hand(3, alpha, beta, seed)):
        features, labels = held(trace, client)
        assert features.dtype == np.float32
        assert np.array_equal(features, expected.features.astype(np.float32))
        assert np.array_equal(labels, expected.labels)


def test_iid_samples_are_those_of_the_published_generator() -> None:
    trace = build(iid=True, data_seed=4)
    for client, expected in enumerate(iid_by_hand(3, 4)):
        features, labels = held(trace, client)
        assert np.array_equal(features, expected.features.astype(np.float32))
        assert np.array_equal(labels, expected.labels)
    with pytest.raises(ValidationError, match="iid = true: clients do not differ; leave out alpha and beta"):
        build(iid=True, alpha=1, beta=2)


def test_a_number_of_samples_is_that_of_each_client_for_training_and_for_tests() -> None:
    trace = build(clients=7, iid=True, samples=12)
    assert [trace.held(np.arange(7), split, 0).counts().tolist() for split in SPLITS] == [[12] * 7] * 2
    with pytest.raises(ConfigurationError, match="2000000 samples each, or more, they have more than the"):
        build(clients=100, samples=1_000_000)


def test_a_rule_keeps_features_to_the_bit_and_gives_labels_by_other_weights() -> None:
    parts = [{"part": part, "of": 2} for part in (1, 2)]
    changes = [{"what": "rule", "on": "held", "at_step": 1, "clients": part} for part in parts]
    trace = build(clients=4, samples=30, iid=True, changes=changes)
    assert trace.concepts is not None
    streams = [RandomStreams(0).generator("rule", number, 0) for number in (0, 1)]  # of the data seed
    rules = [(stream.normal(0, 1, (60, 10)), stream.normal(0, 1, 10)) for stream in streams]
    of_concept: dict[int, set[int]] = {}
    for client in range(4):
        before, after = held(trace, client), held(trace, client, step=1)
        assert np.array_equal(before.features, after.features)
        assert (before.labels != after.labels).mean() > 0.4
        made = [
            np.argmax(after.features.astype(np.float64) @ weights + bias, axis=1) for weights, bias in rules
        ]
        [number] = [number for number, labels in enumerate(made) if np.array_equal(labels, after.labels)]
        of_concept.setdefault(int(trace.concepts[1, client]), set()).add(number)
    assert sorted(of_concept) == [1, 2]
    assert sorted(of_concept.values(), key=min) == [{0}, {1}]


def test_labels_that_a_rule_would_take_are_refused() -> None:
    permuted, anew = ({"what": what, "on": "held", "at_step": 1} for what in ("permute", "rule"))
    several = partial(build, clients=4, iid=True, samples=30, rounds=20)
    with pytest.raises(ConfigurationError, match=r"changes\.1: rule gives labels anew, and client 0 would"):
        several(changes=[permuted, anew])
    with pytest.raises(ConfigurationError, match=r"lose those of trace\.changes\.0 \(rule\); list that"):
        several(changes=[anew, anew])
    once = {**permuted, "on": "arrivals", "at_step": 0, "until_step": 1}
    with pytest.raises(ConfigurationError, match=r"changes\.1: rule gives labels anew"):
        several(changes=[once, anew])  # samples of step 0 keep their change
    several(changes=[anew, permuted])
    several(changes=[{**permuted, "until_step": 2}, {**anew, "at_step": 2}])
    parts = [{"clients": {"part": part, "of": 2}} for part in (1, 2)]
    several(changes=[permuted | parts[0], anew | parts[1]])


def test_a_client_has_a_tenth_of_its_samples_for_tests_rounded_up() -> None:
    trace = build(clients=30)
    counts = [trace.held(np.arange(30), split, 0).counts() for split in SPLITS]
    sizes = counts[0] + counts[1]
    assert counts[0].tolist() == [int(0.9 * size) for size in sizes.tolist()]
    assert (counts[0][0], counts[1][0]) == (1718, 191)  # of 1909
    assert (counts[1].min(), sizes.min()) == (5, 50)
    columns = trace.columns()
    assert np.array_equal(np.sort(columns.image), np.arange(22349))  # every sample once, in one split
    first = np.sort(columns.image[(columns.client == 0) & (columns.split == 1)])
    assert np.diff(first).max() > 1  # in random order, not the last ones


def test_clients_keep_their_samples_to_the_end() -> None:
    trace = build(rounds=23)
    stream, everyone = TraceStream(trace), np.arange(3)
    at_start = [trace.held(everyone, split, 0).counts().tolist() for split in SPLITS]
    for round_ in range(23):
        assert stream.advance_to_round(round_).tolist() == (everyone.tolist() if round_ == 0 else [])
        assert [stream.held(everyone, split).counts().tolist() for split in SPLITS] == at_start
    assert (trace.last_step, trace.retain_steps, trace.rounds_per_step) == (0, 5, 5)
    assert (trace.num_clients, trace.num_labels, trace.sample_shape, trace.concepts) == (3, 10, (60,), None)


def test_runs_of_all_seeds_see_the_same_data_unless_they_are_to_draw_their_own() -> None:
    assert build(seed=0).digest() == build(seed=1).digest()
    assert build(data_seed=5).digest() == build(seed=1, data_seed=5).digest() != build().digest()
    assert build(seed=1, data_seed="run").digest() == build(data_seed=1).digest()
    assert build(seed=2, data_seed="run").digest() != build(seed=1, data_seed="run").digest()
    assert build(alpha=1.0).digest() != build(beta=1.0).digest() != build().digest()


def test_a_longer_run_has_the_same_samples() -> None:
    assert same(build(rounds=5).columns(), build(rounds=50).columns())


def test_more_samples_than_fit_are_refused_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError) as refused:
        build(clients=10**9)
    assert str(refused.value) == (
        "trace.clients = 1000000000: with 50 samples each, or more, they have more than the 16777216 of a "
        "synthetic trace; lower clients"
    )
    monkeypatch.setattr(synthetic, "MOST_SAMPLES", 22348)
    monkeypatch.setattr(synthetic, "_draw", None)
    with pytest.raises(ConfigurationError) as refused:
        build(clients=30)
    assert str(refused.value) == (
        "trace.clients = 30: with this seed they have 22349 samples, more than the 22348 of a synthetic "
        "trace; lower clients"
    )


def test_the_same_clients_hold_samples_with_every_seed_unless_it_draws_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(synthetic, "MOST_SAMPLES", 8678)  # those of 30 clients of seed 1; of seed 0, 22349
    fixed, own = (
        Synthetic(SyntheticSettings.model_validate({"clients": 30, "data_seed": data_seed}))
        for data_seed in (1, "run")
    )
    first = fixed.build(context(10, 1))
    assert fixed.certain_holders(first, context(10, 0)) is first
    assert own.certain_holders(first, context(10, 1)) is first
    with pytest.raises(ConfigurationError, match="with this seed they have 22349 samples, more than"):
        own.certain_holders(first, context(10, 0))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alpha": -1}, "greater than or equal to 0"),
        ({"beta": 1e4}, "less than or equal to 1000"),
        ({"clients": 0}, "greater than or equal to 1"),
        ({"data_seed": "ran"}, "must be a number, or 'run' for the run's own seed"),
        ({"test_on": "next"}, "unknown key 'test_on'"),
    ],
)
def test_a_parameter_that_breaks_a_rule_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        build(**settings)
