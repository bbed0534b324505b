"""Oort's scores by hand over three rounds, what it learns of visits, and whom it draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coordinator.candidates import Candidates
from coordinator.selectors.oort import Oort
from coordinator.selectors.utility import OortSettings
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import ArrayUpdates, EndedVisits, Outcome, SampleRanges
from emulator.seeding import RandomStreams
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import ints

STREAMS = RandomStreams(3)
STEPS, BATCH = 2, 5  # |B| is at most 10


@dataclass
class Clients:
    """Clients that Oort selects, without a federation: what they hold, and how long a visit takes."""

    samples: Sequence[int]
    expected_s: Sequence[float]
    round: int = 0
    holding: Bools = field(init=False)

    def __post_init__(self) -> None:
        self.holding = np.ones(len(self.samples), dtype=bool)

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def view(self) -> Any:
        ends = np.cumsum(self.samples)
        return SimpleNamespace(
            num_clients=len(self),
            holding=self.holding,
            local_steps=STEPS,
            batch_size=BATCH,
            held=lambda ids: SampleRanges.one_each(ends[ids] - np.array(self.samples)[ids], ends[ids]),
            expected_s=lambda ids: np.array(self.expected_s)[ids],
            rng=self.rng,
            rngs=lambda purpose, lanes: (self.rng(purpose, lane) for lane in lanes.tolist()),
        )

    def rng(self, purpose: str, *key: int) -> np.random.Generator:
        return STREAMS.generator(purpose, self.round, *key)

    def select(
        self,
        oort: Oort,
        wanted: Sequence[int],
        lanes: Sequence[Ints] | None = None,
        offline: Ints | None = None,
    ) -> list[int]:
        """The participants of the next round, of one lane with all clients or of the given `lanes`."""
        everyone = np.flatnonzero(self.holding)
        online = ~np.isin(np.arange(len(self)), ints() if offline is None else offline)
        candidates = Candidates([everyone] if lanes is None else lanes, lambda ids: online[ids])
        chosen = oort.select(candidates, np.array(wanted), self.view).tolist()
        self.round += 1
        return chosen


def of(count: int) -> Clients:
    """Clients that hold 40 samples each, and whose visits take a second."""
    return Clients([40] * count, [1.0] * count)


def back(
    oort: Oort,
    losses: Mapping[int, float],
    took_s: Mapping[int, float] | None = None,
    samples: Mapping[int, int] | None = None,
    abandoned: Sequence[int] = (),
    dropped: Sequence[int] = (),
) -> None:
    """The visits of a round have ended; `losses` has the mean squared loss of the completed ones."""
    ends = {
        **dict.fromkeys(losses, Outcome.COMPLETED),
        **dict.fromkeys(abandoned, Outcome.ABANDONED),
        **dict.fromkeys(dropped, Outcome.DROPPED),
    }
    client = np.array(sorted(ends), dtype=np.int64)
    start_s = np.full(len(client), 100.0)
    end_s = start_s + [(took_s or {}).get(one, 1.0) for one in client.tolist()]
    outcome = np.array([ends[one] for one in client.tolist()], dtype=np.int64)
    oort.feedback(
        EndedVisits(client, client, 0 * client, start_s, end_s, outcome, 0 * client), updates(losses, samples)
    )


def updates(losses: Mapping[int, float], samples: Mapping[int, int] | None = None) -> ArrayUpdates | None:
    client = np.array(sorted(losses), dtype=np.int64)
    if len(client) == 0:
        return None
    ones = np.ones(len(client), dtype=np.int64)
    held = np.array([(samples or {}).get(one, 40) for one in client.tolist()])
    squared = np.array([losses[one] for one in client.tolist()], dtype=np.float64)
    return ArrayUpdates(
        client, ones, held, STEPS * ones, np.zeros((len(client), 1), "f"), {"loss_squared": squared}
    )


def learned(oort: Oort, name: str) -> Any:
    return oort.state()[f"_{name}"]


EVERYONE = np.arange(6)


def test_scores_of_three_rounds_are_those_worked_out_by_hand() -> None:
    # The pacer's window is one selection. At most 10 of the samples count, so that U = 10 at first, or 4.
    clients = Clients([40, 40, 40, 40, 40, 4], [1.0, 1.0, 1.0, 8.0, 5.0, 6.0])
    oort = Oort(OortSettings(round_threshold=50, pacer_step=1, pacer_delta=20, clip_bound=0.8))

    # Round 1 is random: all four of those online. Client 3 is abandoned and gets the mean utility.
    assert clients.select(oort, [4], offline=ints(4, 5)) == [0, 1, 2, 3]
    back(oort, {0: 1, 1: 4, 2: 9}, took_s={0: 2, 1: 4, 2: 3}, abandoned=[3])
    assert learned(oort, "utility").tolist() == [10, 20, 30, 20, 10, 4]

    # Round 2, T = 1: there is no bonus, since ln(1) = 0.
    # Durations 2 3 4 | 5 | 6 8: index int(6 x 50 / 100) = 3, so that 5 s are preferred.
    # Utilities 4 10 10 20 | 20 | 30: index int(6 x 0.8) = 4 clips at 20; from 0.999 x 4 to 30.
    assert clients.select(oort, [6]) == [0, 1, 2, 3, 4, 5]
    low, width = 3.996, 26.004
    slow = [1, 1, 1, (5 / 8) ** 2, 1, (5 / 6) ** 2]
    by_hand = [(10 - low) / width, (20 - low) / width, (20 - low) / width, (20 - low) / width, 10.0, 4.0]
    assert_allclose(oort.scores(EVERYONE), np.multiply(by_hand, slow), rtol=1e-14)
    digits = [0.230887556, 0.615443778, 0.615443778, 0.240407726, 10.0, 2.777777778]
    assert oort.scores(EVERYONE).round(9).tolist() == digits
    # The samples of client 5 are 4, so that its utility is 4 x 5; client 2 dropped out.
    back(oort, {0: 4, 1: 1, 4: 9, 5: 25}, {0: 2, 1: 4, 4: 5, 5: 6}, {5: 4}, abandoned=[3], dropped=[2])
    assert learned(oort, "utility").tolist() == [20, 10, 30, 20, 30, 20]
    assert learned(oort, "last_round").tolist() == [2, 2, 1, 2, 2, 2]

    # Round 3, T = 2: of the exploited clients 0 to 3, three were heard; their mean utility is 50 / 3, after 0
    # in the window before: a sharp change, which lowers the percentile to 30. Index int(6 x 0.3) = 1: 3 s.
    # Utilities 10 20 20 20 | 30 | 30: nothing is clipped; from 9.99 to 30.
    assert clients.select(oort, [6]) == [0, 1, 2, 3, 4, 5]
    assert learned(oort, "percentile") == 30
    low, width, log = 9.99, 20.01, np.log(2)
    slow = [1, (3 / 4) ** 2, 1, (3 / 8) ** 2, (3 / 5) ** 2, (3 / 6) ** 2]
    bonus = np.sqrt(0.1 * log / np.array([2, 2, 1, 2, 2, 2]))
    by_hand = (np.array([20, 10, 30, 20, 30, 20]) - low) / width + bonus
    assert_allclose(oort.scores(EVERYONE), by_hand * slow, rtol=1e-14)
    digits = [0.686414746, 0.104998849, 1.263276885, 0.096527074, 0.427019353, 0.171603686]
    assert oort.scores(EVERYONE).round(9).tolist() == digits
    back(oort, {0: 2.56, 4: 2.56}, {0: 4, 4: 5}, abandoned=[1, 2], dropped=[3, 5])

    # Round 4, T = 3: the four that were heard have 16 each, less than a tenth from 50 / 3: utility is flat,
    # and the percentile is 50 again. Durations 3 4 4 | 5 | 6 8. Utilities 16 16 16 16 | 20 | 20.
    assert clients.select(oort, [6]) == [0, 1, 2, 3, 4, 5]
    assert learned(oort, "percentile") == 50
    low, width, log = 15.984, 4.016, np.log(3)
    slow = [1, 1, 1, (5 / 8) ** 2, 1, (5 / 6) ** 2]
    bonus = np.sqrt(0.1 * log / np.array([3, 3, 3, 2, 3, 2]))
    by_hand = (np.array([16, 16, 16, 20, 16, 20]) - low) / width + bonus
    assert_allclose(oort.scores(EVERYONE), by_hand * slow, rtol=1e-14)
    digits = [0.195348662, 0.195348662, 0.195348662, 0.482176879, 0.195348662, 0.857203341]
    assert oort.scores(EVERYONE).round(9).tolist() == digits


def after_two_rounds(count: int, wanted: int, **settings: Any) -> tuple[Clients, Oort]:
    """Clients of which all were visited in the first round, with utilities 10, 20, 30 and so on."""
    clients, oort = of(count), Oort(OortSettings(**settings))
    assert clients.select(oort, [count]) == list(range(count))
    back(oort, {one: (one + 1) ** 2 for one in range(count)})
    clients.select(oort, [wanted])
    return clients, oort


def test_a_draw_is_by_the_streams_of_round_and_lane_and_in_proportion_to_the_scores() -> None:
    # Two of four tried clients are exploited, and two of the untried ones, 4 to 9, explored: int(4 x 0.588).
    clients, oort = of(10), Oort(OortSettings(exploration_factor=0.6))
    assert clients.select(oort, [4], offline=np.arange(4, 10)) == [0, 1, 2, 3]
    back(oort, {0: 1, 1: 4, 2: 9, 3: 16})
    chosen = clients.select(oort, [4])
    scores, generator = oort.scores(np.arange(10)), STREAMS.generator("selection", 1, 0)
    first_tried = np.argsort(generator.standard_exponential(4) / scores[:4])[:2]
    first_untried = 4 + np.argsort(generator.standard_exponential(6) / scores[4:])[:2]
    assert chosen == sorted([*first_tried, *first_untried])


def test_the_index_beyond_the_last_score_is_the_last_one() -> None:
    # All tried clients are exploited: FedScale looks for the score after the last one, and fails.
    clients, oort = of(3), Oort(OortSettings())
    assert clients.select(oort, [3]) == [0, 1, 2]
    back(oort, {0: 1, 1: 4, 2: 9})
    assert clients.select(oort, [3]) == [0, 1, 2]
    assert clients.select(oort, [7]) == [0, 1, 2]
    assert learned(oort, "exploited").tolist() == [0, 1, 2]


def test_with_nobody_untried_all_are_exploited_and_nobody_is_explored_again() -> None:
    # FedScale fills int(10 x 0.588) of the ten with the clients that it explored last, also if these are
    # selected already.
    clients, oort = of(30), Oort(OortSettings(exploration_factor=0.6))
    clients.select(oort, [30])
    back(oort, dict.fromkeys(range(30), 4.0))
    for _ in range(20):
        chosen = clients.select(oort, [10], offline=ints(7, 8))
        assert len(set(chosen)) == 10
        assert not {7, 8} & set(chosen)
        assert learned(oort, "exploited").tolist() == chosen
        back(oort, dict.fromkeys(chosen, 4.0))


def test_too_few_of_one_group_are_made_up_for_by_the_other() -> None:
    clients, oort = of(12), Oort(OortSettings(exploration_factor=0.3))
    clients.select(oort, [10], offline=ints(10, 11))
    back(oort, dict.fromkeys(range(10), 4.0))
    # int(10 x 0.3) = 3 untried clients are wanted, and there are 2.
    chosen = clients.select(oort, [10])
    assert {10, 11} < set(chosen)
    assert len(set(chosen)) == 10
    # 10 of 12 are wanted, of whom 2 are tried: the other 8 are untried.
    clients, oort = of(12), Oort(OortSettings(exploration_factor=0.3))
    clients.select(oort, [2], offline=np.arange(2, 12))
    back(oort, {0: 1.0, 1: 1.0})
    chosen = clients.select(oort, [10])
    assert {0, 1} < set(chosen)
    assert len(set(chosen)) == 10


def test_rounds_count_from_1_so_that_the_age_of_no_utility_is_divided_by_0() -> None:
    clients, oort = of(4), Oort(OortSettings())
    clients.select(oort, [4])
    back(oort, {0: 1, 1: 4}, abandoned=[2], dropped=[3])
    assert learned(oort, "last_round").tolist() == [1, 1, 1, 0]
    for _ in range(2):
        with np.errstate(all="raise"):
            clients.select(oort, [4])
        assert np.isfinite(oort.scores(np.arange(4))).all()


def test_the_share_explored_decays_once_a_round_down_to_its_minimum() -> None:
    clients, oort = of(400), Oort(OortSettings())
    lanes = [np.arange(200), np.arange(200, 400)]
    explored, shares = [], []
    for _ in range(60):
        before = learned(oort, "last_round").copy()
        chosen = clients.select(oort, [5, 5], lanes)
        explored.append(int((before[chosen] == 0).sum()) if len(before) > 0 else 0)
        shares.append(learned(oort, "exploration"))
        back(oort, dict.fromkeys(chosen, 1.0))
    assert shares[:3] == [0.9, 0.9 * 0.98, 0.9 * 0.98 * 0.98]
    assert shares[53] == pytest.approx(0.9 * 0.98**53)
    assert shares[55:] == [0.3] * 5
    # int(5 x 0.882) = 4 of each lane at first, and int(5 x 0.3) = 1 in the end.
    assert explored[1:5] == [8, 8, 8, 8]
    assert explored[55:] == [2] * 5


def test_the_first_round_is_uniform_and_explores() -> None:
    counts = np.zeros(5)
    for seed in range(400):
        clients, oort = (
            Clients([1, 40, 40, 40, 40], [1.0, 9.0, 1.0, 1.0, 1.0], round=seed),
            Oort(OortSettings()),
        )
        counts[clients.select(oort, [2])] += 1
    assert counts.sum() == 800
    assert counts.min() > 120  # 160 are expected of each, also of those with few samples or slow devices
    assert learned(oort, "exploited").tolist() == []


def test_the_pacer_acts_every_20_selections_from_the_40th_on() -> None:
    clients, oort = after_two_rounds(3, 3)
    percentiles = {}
    for selection in range(2, 82):
        back(oort, dict.fromkeys(range(3), 4.0))
        clients.select(oort, [3])
        percentiles[selection] = learned(oort, "percentile")
    changed = [number for number in range(3, 82) if percentiles[number] != percentiles[number - 1]]
    assert changed == [40, 60, 80]  # utility is flat
    assert (percentiles[39], percentiles[40], percentiles[60], percentiles[80]) == (30, 35, 40, 45)


def test_where_the_percentile_is_100_no_client_is_slow() -> None:
    clients, oort = Clients([40, 40], [1.0, 1e6]), Oort(OortSettings(round_threshold=100))
    clients.select(oort, [1], offline=ints(1))
    back(oort, {0: 1.0})
    clients.select(oort, [2])
    assert oort.scores(ints(0, 1))[1] == 10


def test_the_preferred_duration_is_one_of_all_clients_with_data_also_of_other_lanes_and_offline() -> None:
    clients = Clients([40] * 10, [float(2 + one) for one in range(10)])
    oort = Oort(OortSettings())
    lanes = [np.arange(5, 10)]
    clients.select(oort, [1], lanes)
    back(oort, {})
    clients.select(oort, [1], lanes, offline=ints(9))
    assert learned(oort, "preferred_s") == 5.0  # index int(10 x 0.3) = 3 of 2, 3, 4, 5 ...
    assert_allclose(oort.scores(ints(5, 8)), [10 * (5 / 7) ** 2, 10 * (5 / 10) ** 2])
    clients.holding[:4] = False
    clients.select(oort, [1], lanes)
    assert learned(oort, "preferred_s") == 7.0  # index int(6 x 0.3) = 1 of 6, 7, 8 ...


def test_lanes_have_their_own_quota_scale_and_stream() -> None:
    lanes = [np.arange(4), np.arange(4, 8), np.arange(8, 12)]

    def second_round(losses: Mapping[int, float], wanted: Sequence[int]) -> tuple[list[int], Floats]:
        clients, oort = of(12), Oort(OortSettings())
        clients.select(oort, [4, 4, 4], lanes)
        back(oort, losses)
        return clients.select(oort, wanted, lanes), oort.scores(lanes[0])

    losses = {one: float(1 + one % 4) for one in range(12)}
    chosen, scores = second_round(losses, [2, 1, 0])
    assert [sum(one in lane for one in chosen) for lane in lanes] == [2, 1, 0]
    # Losses of another lane, a hundred times as large, change neither scores nor draws of this one.
    with_others, same = second_round({**losses, **{one: 100.0 * one for one in range(4, 12)}}, [2, 4, 4])
    assert same.tolist() == scores.tolist()
    assert with_others[:2] == chosen[:2]


def test_a_client_keeps_what_is_known_of_it_through_another_lane_leave_and_return() -> None:
    clients, oort = of(4), Oort(OortSettings())
    clients.holding[3] = False
    clients.select(oort, [1, 2], [ints(0), ints(1, 2)])
    back(oort, {0: 1, 1: 4, 2: 9}, took_s={2: 7})
    assert np.isnan(learned(oort, "utility")[3])
    # Client 0 leaves; client 3 comes for the first time, with 6 samples and a slow device.
    clients.samples, clients.expected_s = [40, 40, 40, 6], [1.0, 1.0, 1.0, 3.0]
    clients.holding = np.array([False, True, True, True])
    assert clients.select(oort, [3]) == [1, 2, 3]
    assert learned(oort, "utility").tolist() == [10, 20, 30, 6]
    assert learned(oort, "duration_s").tolist() == [1, 1, 7, 3]
    # Client 0 is back, and client 3 has more samples by now: nothing new is known of either.
    clients.samples = [5, 40, 40, 40]
    clients.holding[0] = True
    assert clients.select(oort, [4]) == [0, 1, 2, 3]
    assert learned(oort, "utility").tolist() == [10, 20, 30, 6]
    assert learned(oort, "last_round").tolist() == [1, 1, 1, 0]


def test_of_a_dropped_visit_nothing_is_learned() -> None:
    clients, oort = of(3), Oort(OortSettings())
    clients.select(oort, [3])
    back(oort, {0: 4.0}, dropped=[1, 2], took_s={1: 50})
    assert learned(oort, "last_round").tolist() == [1, 0, 0]
    assert learned(oort, "utility").tolist() == [20, 10, 10]
    assert learned(oort, "duration_s").tolist() == [1, 1, 1]


def test_a_visit_without_a_usable_update_counts_as_tried_with_the_mean_utility() -> None:
    clients, oort = of(4), Oort(OortSettings())
    clients.select(oort, [4])
    # Client 1 came back with a loss that is not finite, client 2 with an update that was refused; client 3
    # was abandoned. Only completed visits are measured.
    client, ended = np.arange(4), Outcome.COMPLETED
    visits = EndedVisits(
        client,
        client,
        0 * client,
        np.zeros(4),
        np.array([2.0, 3, 4, 5]),
        ints(ended, ended, ended, Outcome.ABANDONED),
        0 * client,
    )
    oort.feedback(visits, updates({0: 16.0, 1: np.nan}))
    assert learned(oort, "utility").tolist() == [40, 40, 40, 40]
    assert learned(oort, "last_round").tolist() == [1, 1, 1, 1]
    assert learned(oort, "duration_s").tolist() == [2, 3, 4, 1]


def test_in_a_round_without_any_update_utilities_stay() -> None:
    clients, oort = of(2), Oort(OortSettings())
    clients.select(oort, [2])
    back(oort, {}, abandoned=[0, 1])
    assert learned(oort, "utility").tolist() == [10, 10]
    assert learned(oort, "last_round").tolist() == [1, 1]


def test_a_client_that_trains_two_models_has_the_utility_of_both() -> None:
    clients, oort = of(2), Oort(OortSettings())
    clients.select(oort, [2])
    client, rows = np.arange(2), ints(0, 0, 1)
    visits = EndedVisits(client, client, 0 * client, np.zeros(2), np.ones(2), ints(1, 1), ints(0, 0))
    metrics = {"loss_squared": np.array([1.0, 9.0, 4.0])}
    delta = np.zeros((3, 1), dtype=np.float32)
    oort.feedback(visits, ArrayUpdates(rows, ints(5, 6, 5), ints(40, 3, 40), ints(2, 2, 2), delta, metrics))
    assert learned(oort, "utility").tolist() == [10 * 1 + 3 * 3, 10 * 2]


def test_where_all_utilities_are_0_scores_are_finite_and_equal() -> None:
    clients, oort = after_two_rounds(3, 3, exploration_factor=0, exploration_min=0)
    back(oort, dict.fromkeys(range(3), 0.0))
    # The scale has no width of its own, and the bonus is sqrt(0.1 ln(2) / 2) for all.
    assert len(clients.select(oort, [2])) == 2
    assert_allclose(oort.scores(np.arange(3)), [np.sqrt(0.05 * np.log(2))] * 3)


def test_the_score_of_a_utility_of_0_is_its_distance_below_the_scale_as_in_fedscale() -> None:
    clients, oort = of(3), Oort(OortSettings())
    clients.select(oort, [3])
    back(oort, {0: 0.0, 1: 4.0, 2: 16.0})
    clients.select(oort, [3])
    # Utilities 0, 20 and 40: from 19.98 to 40, without a bonus.
    assert_allclose(oort.scores(np.arange(3)), [19.98 / 20.02, 0.02 / 20.02, 1.0])


def test_it_needs_the_squared_loss_and_no_reports() -> None:
    oort = Oort(OortSettings())
    assert oort.needs == {"loss_squared"}
    assert not oort.needs_reports


def test_stored_between_any_two_calls_it_selects_as_if_it_had_not_been() -> None:
    def play(store: bool) -> list[list[int]]:
        clients, oort = of(40), Oort(OortSettings(pacer_step=2))

        def stored(oort: Oort) -> Oort:
            if not store:
                return oort
            content = to_bytes(oort.state())
            again = Oort(oort.settings)
            again.restore(from_bytes(content))
            return again

        rounds = []
        for _ in range(8):
            rounds.append(clients.select(oort, [6]))
            oort = stored(oort)
            back(oort, {one: 1.0 + one for one in rounds[-1][:-2]}, abandoned=rounds[-1][-2:])
            oort = stored(oort)
        return rounds

    assert play(store=True) == play(store=False)
