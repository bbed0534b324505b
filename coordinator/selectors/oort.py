"""Oort's training selector: clients of high loss, fewer of the slow ones, and some that were never tried."""

from __future__ import annotations

import numpy as np

from coordinator.candidates import Candidates
from coordinator.selectors import utility
from coordinator.selectors.base import Selector
from coordinator.selectors.utility import OortSettings, Scale
from coordinator.view import View
from emulator.arrays import NO_IDS, Floats, Ints
from emulator.messages import EndedVisits, Outcome, TaskMetric, Updates
from emulator.numbers import MOST


class Oort(Selector):
    """Draws clients by their utility |B| sqrt(mean squared loss); a slow one counts for less.

    |B| = min(samples, steps x batch size), the loss is that of the last batch. Before its first visit a
    client has the utility |B| and the duration `expected_s`. The first round is random. A client whose visit
    was abandoned, or brought no usable update, counts as tried with the mean utility of its round; of a visit
    that dropped out nothing is learned, as in FedScale. Durations are measured on completed visits.

    One state serves all lanes, and outlasts re-clustering, leave and return. The preferred duration (a
    percentile over all clients that hold data), the share explored and the pacer are common to all lanes;
    quota, scale (over tried and untried clients), cut-off and samples are a lane's, as losses under the
    models of two clusters are not comparable.

    Mended: a missing (n + 1)-th best score is the worst one; too few untried clients are replaced by tried
    ones, instead of those explored before; rounds count from 1, so that none divides by 0. As in FedScale,
    the bonus and the pacer do not count the first, random selection, and scores are absolute values: that of
    a utility of 0, below the scale, is high if the others are all but equal. Its blacklist, off by default,
    is left out.

    It needs whole rounds: the bonus, the pacer and the mean utility of an abandoned visit are of the round of
    the last selection.

    State: the number of selections, the share explored, the pacer's percentile and windows, the clients last
    exploited, and by client the utility (NaN: not registered), duration and last round (0: never tried).

    Source: Lai et al., "Oort", OSDI 2021, as in FedScale's code.

    Three clients with mean squared losses of 1, 4 and 900 are all tried in the first round. In the next one
    their scores are 0.00003, 0.03 and 1, without a bonus, and one of them is exploited:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates, SampleRanges
    >>> view = SimpleNamespace(num_clients=3, holding=np.ones(3, dtype=bool), local_steps=2, batch_size=4)
    >>> view.held = lambda ids: SampleRanges.one_each(20 * ids, 20 * ids + 20)
    >>> view.expected_s, view.rngs = np.ones_like, lambda purpose, lanes: map(np.random.default_rng, lanes)
    >>> candidates = Candidates([np.arange(3)], lambda ids: np.ones(len(ids), dtype=bool))
    >>> oort = Oort(OortSettings())
    >>> ids, ones = oort.select(candidates, np.array([3]), view), np.ones(3, dtype=np.int64)
    >>> visits = EndedVisits(ids, ids, 0 * ones, 0.0 * ones, 1.0 * ones, Outcome.COMPLETED * ones, 0 * ones)
    >>> losses, delta = {"loss_squared": np.array([1.0, 4.0, 900.0])}, np.ones((3, 1), dtype=np.float32)
    >>> oort.feedback(visits, ArrayUpdates(ids, ones, 20 * ones, ones, delta, losses))
    >>> oort.select(candidates, np.array([1]), view)
    array([2])
    """

    Settings = OortSettings
    settings: OortSettings
    needs_whole_rounds = True
    state_fields = (
        *("_round", "_exploration", "_percentile", "_preferred_s", "_visit_samples", "_exploited"),
        *("_gain", "_window", "_window_before", "_utility", "_duration_s", "_last_round"),
    )

    def __init__(self, settings: OortSettings) -> None:
        super().__init__(settings)
        self._round = 0  # selections so far, with the first, random one
        self._exploration, self._percentile = settings.exploration_factor, float(settings.round_threshold)
        self._preferred_s = 0.0  # the duration at that percentile
        self._visit_samples = 0  # steps x batch size; of epochs, more than any client has
        self._exploited = NO_IDS  # ids of the last selection
        # Mean utility of these, and its sum over the pacer's present and last window.
        self._gain = self._window = self._window_before = 0.0
        self._utility, self._duration_s, self._last_round = np.zeros(0), np.zeros(0), NO_IDS

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"loss_squared"})

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        self._register(view)
        self._round += 1
        if self._round > 1:
            self._pace(self._round - 1)
        tried, untried = [NO_IDS], [NO_IDS]
        streams = view.rngs("selection", np.arange(len(wanted)))
        self._preferred_s = utility.preferred_s(self._duration_s[view.holding], self._percentile)
        for lane, (count, generator) in enumerate(zip(wanted.tolist(), streams, strict=True)):
            if self._round == 1:
                untried.append(candidates.draw(lane, count, generator))
            elif count > 0:
                best, new = self._of_lane(candidates.ids(lane), count, generator)
                tried.append(best)
                untried.append(new)
        self._exploited = np.concatenate(tried)
        return np.sort(np.concatenate([*tried, *untried]))

    def scores(self, ids: Ints) -> Floats:
        """What the last selection drew the candidates `ids` (n,) of a lane in proportion to.

        That is (n,) the score of a tried client, the initial utility of others, less for slow clients.
        """
        score, last_round = self._utility[ids], self._last_round[ids]
        tried = np.flatnonzero(last_round)
        scale = Scale.of(score, self.settings.clip_bound)
        score[tried] = utility.scores(score[tried], last_round[tried], self._round - 1, scale)
        penalty = self.settings.round_penalty
        return np.abs(utility.slowed(score, self._duration_s[ids], self._preferred_s, penalty))

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        heard = visits.client[visits.outcome != Outcome.DROPPED]
        self._last_round[heard] = self._round
        back = visits.outcome == Outcome.COMPLETED
        self._duration_s[visits.client[back]] = (visits.end_s - visits.start_s)[back]
        clients, learned = utility.learned(updates, self._visit_samples)
        if len(clients) > 0:
            self._utility[heard], self._utility[clients] = learned.mean(), learned
        gains = self._utility[np.intersect1d(self._exploited, heard)]
        self._gain = float(gains.mean()) if len(gains) > 0 else 0.0

    def _register(self, view: View) -> None:
        """Give clients that hold data for the first time a utility and a duration."""
        if self._round == 0:
            steps = view.local_steps
            self._visit_samples = MOST if steps is None else steps * view.batch_size
            self._utility, self._duration_s = np.full((2, view.num_clients), np.nan)
            self._last_round = np.zeros(view.num_clients, dtype=np.int64)
        new = np.flatnonzero(view.holding & np.isnan(self._utility))
        if len(new) > 0:
            self._utility[new] = np.minimum(view.held(new).counts(), self._visit_samples)
            self._duration_s[new] = view.expected_s(new)

    def _pace(self, selection: int) -> None:
        """Decay the share explored and, after a window, move the percentile; `selection` counts from 1."""
        settings = self.settings
        self._exploration = max(self._exploration * settings.exploration_decay, settings.exploration_min)
        self._window, self._gain = self._window + self._gain, 0.0
        if selection % settings.pacer_step == 0:
            if selection >= 2 * settings.pacer_step:
                windows = self._window, self._window_before
                self._percentile = utility.paced(self._percentile, settings.pacer_delta, *windows)
            self._window, self._window_before = 0.0, self._window

    def _of_lane(self, ids: Ints, count: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
        """The tried and the untried clients that are selected: `count` of the candidates `ids`, or all."""
        settings, score, is_tried = self.settings, self.scores(ids), self._last_round[ids] > 0
        tried, untried, count = ids[is_tried], ids[~is_tried], min(count, len(ids))
        num_untried = utility.number_untried(count, len(tried), len(untried), self._exploration)
        best = utility.exploited(score[is_tried], count - num_untried, settings.cut_off_util, generator)
        new = utility.explored(score[~is_tried], num_untried, settings.sample_window, generator)
        return tried[best], untried[new]
