"""Texts of Markov chains: their entropy rate by hand and by simulation, and what authors have in common."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.errors import ConfigurationError, InputError
from experiments.sameness import same
from tests.traces.tiny import context
from traces.sources.markov_text import (
    BACKGROUND,
    MarkovText,
    MarkovTextSettings,
    author_tables,
    drawn_texts,
    entropy_rate,
    stationary_pairs,
)
from traces.trace import Trace

ONE_AUTHOR = {"labels_per_mix": 1, "mixes": 2, "background": 0, "concentration": 1e9}
SMALL = {
    "clients": 4,
    "authors": 3,
    "length": 12,
    "texts": 20,
    "rounds_per_step": 2,
    "retain_rounds": 4,
    "drift": {"kind": "none", **ONE_AUTHOR},
}


def settings_of(**settings: Any) -> MarkovTextSettings:
    return MarkovTextSettings.model_validate({**SMALL, **settings})


def build(seed: int = 0, **settings: Any) -> Trace:
    return MarkovText(settings_of(**settings)).build(context(8, seed))


def switching(after_equal: float, after_unequal: float) -> Floats:
    """Two symbols: the next one is other than the last with a chance that depends on the two before."""
    chance = np.array([[after_equal, after_unequal], [after_unequal, after_equal]])
    other = np.array([[0, 1], [1, 0]], dtype=float)
    return np.where(other[None] == 1, chance[..., None], 1 - chance[..., None])


def test_the_entropy_rate_of_a_chain_of_two_symbols_by_hand() -> None:
    """Changes happen with 1/2 after two equal symbols, and with 1/4 after two unequal ones.

    Whether two symbols differ is a chain of its own: differing has the share u = (1 - u) / 2 + u / 4 = 0.4.
    So the rate is 0.6 ln 2 + 0.4 (ln 4 - 3/4 ln 3).
    """
    table = switching(1 / 2, 1 / 4)
    assert stationary_pairs(table) == pytest.approx(np.array([[0.3, 0.2], [0.2, 0.3]]), abs=1e-15)
    assert entropy_rate(table) == pytest.approx(1.4 * log(2) - 0.3 * log(3), abs=1e-15)


def test_a_chain_that_goes_round_has_no_entropy_and_an_even_one_all() -> None:
    assert entropy_rate(switching(1, 0)) == 0  # 0, 0, 1, 1 without end
    assert entropy_rate(np.full((28, 28, 28), 1 / 28)) == pytest.approx(log(28), abs=1e-12)


def test_texts_are_of_their_table_from_their_first_pair_on() -> None:
    [table] = author_tables(settings_of(authors=1), context())
    texts = drawn_texts(table, 20_000, 10, np.random.default_rng(1)).astype(int)
    surprise = -np.log(table[texts[:, :-2], texts[:, 1:-1], texts[:, 2:]])
    error = surprise.mean(axis=1).std() / 20_000**0.5
    assert surprise.mean() == pytest.approx(entropy_rate(table), abs=4 * error)
    shares = np.bincount(texts[:, 0] * 28 + texts[:, 1], minlength=784) / 20_000
    expected = stationary_pairs(table).ravel()
    assert np.abs(shares - expected).max() < 4 * (expected.max() / 20_000) ** 0.5


def test_authors_differ_in_the_share_of_rows_that_is_their_own() -> None:
    for difference, alike in ((0.0, 784), (1.0, 0)):
        one, other = author_tables(settings_of(authors=2, difference=difference), context())
        assert (one == other).all(axis=2).sum() == alike
    half = author_tables(settings_of(authors=2, difference=0.5), context())
    assert 0.2 < np.equal(*half).all(axis=2).mean() < 0.3  # neither has its own: 0.5 x 0.5
    for table in half:
        assert table.sum(axis=2) == pytest.approx(1, abs=1e-12)
        assert table.min() >= BACKGROUND / 28


def test_a_lower_concentration_is_easier_to_foretell() -> None:
    rates = [
        entropy_rate(author_tables(settings_of(concentration=concentration), context())[0])
        for concentration in (0.01, 0.1, 1.0)
    ]
    assert rates == sorted(rates)


def test_a_text_is_of_the_author_that_is_its_label_and_clients_share_authors() -> None:
    trace = build(length=200)
    tables = author_tables(settings_of(), context())
    rows = np.arange(len(trace))
    texts = trace.features(rows).astype(int)
    likelihood = [np.log(table[texts[:, :-2], texts[:, 1:-1], texts[:, 2:]]).sum(axis=1) for table in tables]
    assert np.array_equal(np.argmax(likelihood, axis=0), trace.labels(rows))
    held = trace.held(np.arange(4), "train", 0)
    authors = [set(trace.labels(np.arange(*ends))) for ends in zip(held.first, held.last, strict=True)]
    assert {len(found) for found in authors} == {1}


def test_clients_that_move_to_another_author_have_an_onset() -> None:
    trace = build(drift={"kind": "label_mix", "move_probability": 1.0, **ONE_AUTHOR})
    assert trace.onsets is not None
    assert trace.onsets.step.tolist() == np.repeat([1, 2, 3], 4).tolist()


def test_the_trace_says_what_its_tokens_are_and_that_the_next_one_is_told() -> None:
    for trace in (build(), build(labels=[2, 0])):
        assert trace.tokens is not None
        assert (trace.tokens.vocabulary, trace.tokens.padding) == (28, None)
        assert trace.objective == {"kind": "next_token"}
        assert trace.sample_shape == (12,)


def test_texts_are_the_same_in_all_runs_unless_they_are_the_runs_own() -> None:
    def texts(seed: int, data_seed: int | str) -> Floats:
        return build(seed, data_seed=data_seed).samples.images.features(np.arange(60))

    assert same(texts(0, 0), texts(1, 0))
    assert not same(texts(0, 0), texts(0, 1))
    assert same(texts(3, "run"), texts(0, 3))


def test_noise_and_too_many_tokens_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^trace: noise = 0.5: its samples are tokens, which take none; set 0"
    ):
        build(noise=0.5)
    with pytest.raises(
        ConfigurationError, match="100 authors x 10000000 texts x 4096 tokens are more than the "
    ):
        build(authors=100, texts=10**7, length=4096)
