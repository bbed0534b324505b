"""STEPD, the statistical test of equal proportions: new samples are predicted worse than earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.detectors.base import Detector
from emulator.arrays import Bools, Floats, Ints
from emulator.numbers import Count, InnerShare, Share
from emulator.plugins import Settings
from emulator.storage.state_tree import Tree


class StepdSettings(Settings):
    """Which test decides, and what is remembered."""

    test: Literal["stepd", "literal", "threshold"] = Field(
        "stepd",
        description="stepd: over numbers of samples; literal: over scores, as FedConD prints it; threshold: "
        "the share of correct predictions fell by more than delta",
        examples=["threshold"],
    )
    significance: InnerShare = Field(
        0.05,
        description="largest probability, without drift, of a fall that is flagged",
    )
    delta: Share = Field(
        0.2,
        description='the fall of the share of correct predictions that `test = "threshold"` allows',
        examples=[0.3],
    )
    queue: Count = Field(20, description="last scores of a client that a new one is compared with")


class Stepd(Detector):
    """Flags a client whose newest samples are predicted worse than those of its last `queue` scores.

    It watches arrivals: at each visit a client scores what has arrived since its last one, by the model that
    it receives. A score is how many of these samples are predicted correctly, of how many.

    Of n_o samples in the queue r_o were predicted correctly, and of n_r new ones r_r. With p_o = r_o / n_o,
    p_r = r_r / n_r, p = (r_o + r_r) / (n_o + n_r) and D = 1 / n_o + 1 / n_r, the client is flagged if p_r <
    p_o, and the upper tail of the normal distribution from

        T = (|p_o - p_r| - D / 2) / sqrt(p (1 - p) D)

    on is at most `significance`. FedConD prints the same with each score, a share, in the place of a sample
    (`test = "literal"`): n_o the number of scores in the queue, r_o their sum, n_r = 1 and r_r the new score.
    Then D / 2 is more than a half, and only a total collapse is ever significant. With `test = "threshold"`,
    a threshold that it names and does not use, a client is flagged if that r_o / n_o - r_r is above `delta`.

    A client without earlier scores is not flagged. The new score joins the queue after the test, and nothing
    is forgotten after a flag.

    State: the last scores, (correct, total), of the clients that have some, and how many each has had.

    Source: Nishida and Yamauchi, "Detecting Concept Drift Using Statistical Testing", DS 2007; Chen et al.,
    "Asynchronous Federated Learning for Sensor Data with Concept Drift", 2021 (FedConD).

    Of 40 samples, and of 40 more, 30 are predicted correctly; then 12 of 40, or 20 of 40. For the latter T is
    (0.25 - 0.01875) / sqrt(2/3 x 1/3 x 0.0375) = 2.53, and its tail 0.006:

    >>> detector = Stepd(StepdSettings(significance=0.001))
    >>> detector.open(2)
    >>> for correct in ([30, 30], [30, 30], [12, 20]):
    ...     print(detector.detect(np.arange(2), np.array([[correct[0], 40], [correct[1], 40.0]]), None))
    [False False]
    [False False]
    [ True False]
    """

    Settings = StepdSettings
    settings: StepdSettings
    threshold = "significance"
    watches = "arrivals"
    needs_labels = True
    state_fields = ("_num_clients", "_correct", "_total", "_scores")

    def __init__(self, settings: StepdSettings) -> None:
        super().__init__(settings)
        self._num_clients = 0
        self._correct: Floats = np.zeros((settings.queue, 0))
        self._total: Floats = np.zeros((settings.queue, 0))
        self._scores: Ints = np.zeros(0, dtype=np.int64)  # how many each client has had

    @property
    def bytes_per_client(self) -> int:
        return 8 * (2 * self.settings.queue + 1)

    def open(self, num_clients: int) -> None:
        self._num_clients = num_clients
        self._correct = np.zeros((self.settings.queue, num_clients))
        self._total = np.zeros((self.settings.queue, num_clients))
        self._scores = np.zeros(num_clients, dtype=np.int64)

    def state(self) -> dict[str, Tree]:
        """The state, in which columns have the clients that have scores, by ascending id."""
        seen = np.flatnonzero(self._scores)
        longest = min(int(self._scores.max(initial=0)), self.settings.queue)
        return {
            "_num_clients": self._num_clients,
            "_correct": self._correct[:longest, seen],
            "_total": self._total[:longest, seen],
            "_scores": np.stack([seen, self._scores[seen]]),
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        self.open(state["_num_clients"])
        seen, scores = state["_scores"]
        self._scores[seen] = scores
        for column, stored in ((self._correct, state["_correct"]), (self._total, state["_total"])):
            column[: len(stored), seen] = stored

    def forget(self, clients: Ints) -> None:
        self._correct[:, clients] = self._total[:, clients] = 0
        self._scores[clients] = 0

    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        flagged = np.zeros(len(clients), dtype=bool)
        scored = np.flatnonzero(signal[:, 1] > 0)
        clients, correct, total = clients[scored], signal[scored, 0], signal[scored, 1]
        flagged[scored] = self._decided(clients, correct, total)
        slot = self._scores[clients] % self.settings.queue
        self._correct[slot, clients] = correct
        self._total[slot, clients] = total
        self._scores[clients] += 1
        return flagged

    def _decided(self, clients: Ints, correct: Floats, total: Floats) -> Bools:
        """(k,) whether each of k clients is flagged, of whose `total` (k,) new samples some are `correct`."""
        past, number = self._correct[:, clients], self._total[:, clients]
        if self.settings.test != "stepd":
            past = np.divide(past, number, out=np.zeros_like(past), where=number > 0)
            number = (number > 0).astype(np.float64)
            correct, total = correct / total, np.ones(len(total))
        # Not sums along the axis, which may be in another order for another number of clients.
        past, number = (np.add.accumulate(column)[-1] for column in (past, number))
        known = number > 0
        earlier = np.divide(past, number, out=np.zeros(len(clients)), where=known)
        fall = earlier - correct / total
        if self.settings.test == "threshold":
            below: Bools = known & (fall > self.settings.delta)
            return below
        with np.errstate(divide="ignore", invalid="ignore"):
            far = statistic(past, number, correct, total) >= self._limit
        found: Bools = known & (fall > 0) & far
        return found

    @cached_property
    def _limit(self) -> float:
        """The statistic whose upper tail is the significance."""
        return -NormalDist().inv_cdf(self.settings.significance)


def statistic(past: Floats, past_number: Floats, new: Floats, number: Floats) -> Floats:
    """The statistic T of `Stepd`, of the difference of two proportions; 0 where all or none are correct.

    Args:
        past: (k,) r_o, the earlier samples that were predicted correctly, or the sum of earlier scores.
        past_number: (k,) n_o, all of them.
        new: (k,) r_r, the new samples that are predicted correctly, or the new score.
        number: (k,) n_r, all of them.

    Returns:
        (k,) floats.

    Twenty scores of 1, and then one of 0: (1 - 0.525) / sqrt(20/21 x 1/21 x 1.05).

    >>> statistic(*(np.array([number]) for number in (20.0, 20.0, 0.0, 1.0))).round(4)
    array([2.1767])
    """
    pooled = (past + new) / (past_number + number)
    delta = 1 / past_number + 1 / number
    spread = np.sqrt(np.maximum(pooled * (1 - pooled), 0) * delta)
    difference = np.abs(past / past_number - new / number) - 0.5 * delta
    return np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0)
