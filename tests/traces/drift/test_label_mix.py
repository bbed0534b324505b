"""With no background and a high concentration a client's shares show its mix: the labels it favours."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.traces.tiny import some_images
from traces.draw import StreamSettings
from traces.drift import PopulationContext
from traces.drift.label_mix import LabelMix, LabelMixSettings

CLIENTS = 300
SHARP: dict[str, Any] = {"background": 0.0, "concentration": 1e6, "move_probability": 0.0}


def shares_of(
    seed: int = 0,
    *,
    clients: int = CLIENTS,
    windows: int = 12,
    num_labels: int = 10,
    first_step: int = -2,
    rounds_per_step: int = 5,
    **settings: Any,
) -> Floats:
    drift = LabelMix(LabelMixSettings.model_validate(settings))
    generator = np.random.default_rng(seed)
    drawn = drift.shares(clients, windows, num_labels, first_step, rounds_per_step, generator)
    return np.stack(list(drawn), axis=1)


def mixes_at(shares: Floats, step: int, first_step: int = -2) -> list[frozenset[int]]:
    """The favoured labels of every client at `step`."""
    at = shares[:, step - first_step]
    return [frozenset(np.flatnonzero(row > 0.5 * row.max()).tolist()) for row in at]


def moved(shares: Floats, step: int) -> int:
    """Clients whose shares at `step` are not those of the step before."""
    return int((shares[:, step + 2] != shares[:, step + 1]).any(axis=1).sum())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"concentration": 1e-3},
        {"concentration": 1e9},
        {"background": 1.0},
        {"background": 0.0, "labels_per_mix": 1},
        {"move_probability": 1.0, "events": [{"round": 10, "share": 0.5}]},
    ],
)
def test_shares_are_shares(settings: dict[str, Any]) -> None:
    shares = shares_of(**settings)
    assert shares.shape == (CLIENTS, 12, 10)
    assert (shares >= 0).all()
    assert np.allclose(shares.sum(axis=2), 1, rtol=0, atol=1e-12)


def test_shares_are_a_function_of_seed_and_settings() -> None:
    assert np.array_equal(shares_of(3), shares_of(3))
    assert not np.array_equal(shares_of(3), shares_of(4))


def test_every_client_is_in_one_of_the_mixes_each_with_its_number_of_labels() -> None:
    mixes = set(mixes_at(shares_of(mixes=4, labels_per_mix=3, **SHARP), 0))
    assert len(mixes) == 4
    assert {len(mix) for mix in mixes} == {3}


def test_mixes_overlap_as_little_as_the_labels_allow() -> None:
    mixes = set(mixes_at(shares_of(mixes=3, labels_per_mix=3, **SHARP), 0))
    assert len(frozenset.union(*mixes)) == 9  # three times three of ten labels: none twice


def test_no_two_mixes_are_the_same_even_when_all_there_are_are_dealt() -> None:
    mixes = set(mixes_at(shares_of(mixes=10, labels_per_mix=2, num_labels=5, **SHARP), 0))
    assert len(mixes) == 10  # 5 choose 2


def test_the_last_mix_is_dealt_with_every_seed() -> None:
    """A thousand draws miss the last of 792 sets of five of twelve labels with a chance of 28 %."""
    for seed in range(8):
        shares_of(seed, clients=1, windows=1, mixes=792, labels_per_mix=5, num_labels=12, **SHARP)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"mixes": 11, "labels_per_mix": 2}, "10 mixes of 2 of 5 labels are all there are to deal"),
        ({"mixes": 2, "labels_per_mix": 5}, "1 mixes of 5 of 5 labels are all"),
        ({"labels_per_mix": 6}, "labels_per_mix = 6: the images have 5 labels"),
        (
            {"mixes": 9, "labels_per_mix": 2, "events": [{"round": 5, "share": 0.1, "mixes": 2}]},
            "10 mixes of 2 of 5 labels are all there are to deal; set fewer mixes",
        ),
    ],
)
def test_more_mixes_than_there_are_is_a_clear_error(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        shares_of(num_labels=5, **settings)


def test_where_all_is_background_more_labels_per_mix_than_there_are_have_no_effect() -> None:
    settings = {"mixes": 3, "background": 1.0, "concentration": 1e9, "num_labels": 2}
    assert np.allclose(shares_of(labels_per_mix=3, **settings), 0.5, atol=1e-3)


def test_shares_lie_around_the_mix_with_the_background_everywhere() -> None:
    shares = shares_of(mixes=1, labels_per_mix=2, background=0.2, concentration=1e9, move_probability=0.0)
    first = np.sort(shares[0, 0])
    assert np.allclose(first, [0.02] * 8 + [0.4 + 0.02] * 2, atol=1e-3)


def test_clients_of_one_mix_stray_from_it_by_the_dirichlets_standard_deviation() -> None:
    # One mix of two labels, no background: a label's share is Beta(a / 2, a / 2), variance 1 / (4 (a + 1)).
    shares = shares_of(clients=4000, windows=1, mixes=1, labels_per_mix=2, background=0.0, concentration=24.0)
    favoured = shares[:, 0].max(axis=0) > 0.01
    assert shares[:, 0, favoured].std(axis=0) == pytest.approx([0.1, 0.1], rel=0.05)


def test_without_moves_and_events_nothing_ever_changes() -> None:
    shares = shares_of(move_probability=0.0)
    assert (shares == shares[:, :1]).all()


def test_nobody_moves_before_the_first_step_of_the_run_is_over() -> None:
    shares = shares_of(**{**SHARP, "move_probability": 1.0})
    assert [moved(shares, step) for step in (-1, 0)] == [0, 0]
    assert [moved(shares, step) for step in (1, 2, 9)] == [CLIENTS] * 3


def test_a_client_that_moves_goes_to_another_mix_in_use() -> None:
    shares = shares_of(mixes=4, **{**SHARP, "move_probability": 1.0})
    in_use = set(mixes_at(shares, 0))
    for step in range(1, 10):
        before, after = mixes_at(shares, step - 1), mixes_at(shares, step)
        assert all(a != b for a, b in zip(before, after, strict=True))
        assert set(after) == in_use


def test_clients_move_each_at_its_own_time_with_the_given_probability() -> None:
    shares = shares_of(windows=43, move_probability=0.1)
    moves = [moved(shares, step) for step in range(1, 41)]
    assert np.mean(moves) == pytest.approx(0.1 * CLIENTS, abs=4 * np.sqrt(0.09 * CLIENTS / 40))
    assert len(set(moves)) > 5


def test_shares_stand_still_while_a_client_does_not_move() -> None:
    shares = shares_of(windows=30, **{**SHARP, "move_probability": 0.1})
    for step in range(1, 28):
        before, after = mixes_at(shares, step - 1), mixes_at(shares, step)
        stayed = np.array([a == b for a, b in zip(before, after, strict=True)])
        assert np.array_equal(shares[stayed, step + 2], shares[stayed, step + 1])


@pytest.mark.parametrize("share", [0.5, 0.85, 1.0, 1 / CLIENTS])
def test_an_event_moves_its_share_of_all_clients_at_once_to_mixes_nobody_has_seen(share: float) -> None:
    events = [{"round": 25, "share": share, "mixes": 4}]
    shares = shares_of(mixes=4, events=events, **SHARP)
    assert [moved(shares, step) for step in range(-1, 10)] == [
        round(share * CLIENTS) if step == 5 else 0 for step in range(-1, 10)
    ]
    before, after = mixes_at(shares, 4), mixes_at(shares, 5)
    joined = {b for a, b in zip(before, after, strict=True) if a != b}
    assert not joined & set(before)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == round(share * CLIENTS)
    if share >= 0.5:
        assert len(joined) == 4


def test_after_an_event_single_moves_go_to_the_new_mixes() -> None:
    events = [{"round": 25, "share": 0.5, "mixes": 2}]
    shares = shares_of(events=events, **{**SHARP, "move_probability": 1.0})
    old = set(mixes_at(shares, 4))
    new = set(mixes_at(shares, 6))
    assert len(new) == 2
    assert not old & new


def test_a_second_event_deals_mixes_that_neither_the_first_nor_the_start_had() -> None:
    events = [{"round": 10, "share": 1.0, "mixes": 3}, {"round": 20, "share": 1.0, "mixes": 3}]
    shares = shares_of(mixes=3, labels_per_mix=2, events=events, **SHARP)
    seen = [set(mixes_at(shares, step)) for step in (0, 2, 4)]
    assert [len(mixes) for mixes in seen] == [3, 3, 3]
    assert len(set.union(*seen)) == 9


@pytest.mark.parametrize(("round_", "step"), [(1, 1), (5, 1), (6, 2), (22, 5), (25, 5)])
def test_an_event_shows_in_the_first_arrivals_at_its_round_or_later(round_: int, step: int) -> None:
    shares = shares_of(events=[{"round": round_, "share": 1.0}], **SHARP)
    assert [at for at in range(-1, 10) if moved(shares, at)] == [step]


def test_an_event_after_the_last_arrivals_is_refused_with_what_to_change() -> None:
    with pytest.raises(ConfigurationError) as refused:
        shares_of(events=[{"round": 5, "share": 1.0}, {"round": 46, "share": 1.0}])
    assert str(refused.value) == (
        "trace.drift.events: the event of round 46 would show in the arrivals of round 50, and the last "
        "arrivals of the run are those of round 45: raise round.rounds above 50, move the event, or leave it "
        "out (--set 'trace.drift.events=[]')"
    )
    static = re.escape(
        "are those of round 0: with trace.static = false, raise round.rounds above 10, move the"
    )
    with pytest.raises(ConfigurationError, match=static):
        shares_of(windows=3, events=[{"round": 10, "share": 1.0}])
    still = shares_of(**SHARP)
    assert not np.array_equal(shares_of(events=[{"round": 45, "share": 1.0}], **SHARP), still)


def test_two_events_in_the_same_arrivals_are_refused_with_both_rounds() -> None:
    events = [{"round": 21, "share": 0.2}, {"round": 25, "share": 0.3}]
    with pytest.raises(ConfigurationError, match=r"rounds 21 and 25 .* those of round 25 \(rounds_per_step"):
        shares_of(events=events)
    shares_of(events=events, rounds_per_step=3)


@pytest.mark.parametrize("round_", [0, -5])
def test_an_event_before_the_first_round_is_refused(round_: int) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        LabelMixSettings.model_validate({"events": [{"round": round_, "share": 0.5}]})


def onsets_of(steps: int, static: bool = False, **settings: Any) -> list[list[int]]:
    """The clients with an onset at each data step from 1 on, of 6 clients and data steps of one round."""
    arrivals = StreamSettings(rounds_per_step=1, retain_rounds=3, samples_per_step=2)
    context = PopulationContext(arrivals, 6, steps, static, RandomStreams(0))
    drift, images = LabelMix(LabelMixSettings.model_validate(settings)), some_images(6)
    table, onsets = drift.draw_with_onsets(images, context)
    assert np.array_equal(table.arrivals().label, drift.draw(images, context).arrivals().label)
    return [onsets.client[onsets.step == step].tolist() for step in range(1, steps)]


def test_a_move_is_an_onset_and_so_is_a_mass_event() -> None:
    everyone = list(range(6))
    assert onsets_of(4, move_probability=0.0) == [[], [], []]
    assert onsets_of(4, move_probability=1.0) == [everyone] * 3
    struck = onsets_of(4, move_probability=0.0, events=[{"round": 2, "share": 0.5, "mixes": 1}])
    assert [len(clients) for clients in struck] == [0, 3, 0]


def test_data_that_is_static_and_the_step_after_the_run_have_no_onset() -> None:
    assert onsets_of(3, static=True, move_probability=1.0) == [[], []]
    arrivals = StreamSettings(rounds_per_step=1, retain_rounds=1, test_on="next")
    context = PopulationContext(arrivals, 2, 3, False, RandomStreams(0))  # two data steps, and the next
    drift = LabelMix(LabelMixSettings(move_probability=1.0))
    onsets = drift.draw_with_onsets(some_images(6), context)[1]
    assert onsets.step.tolist() == [1, 1]
