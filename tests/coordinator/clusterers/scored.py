"""A clusterer whose clients score models, run data step by data step from tables of accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.federation.bank import ModelBank
from coordinator.view import ClaimedBy, Samples, ScoreResponse, View
from emulator.arrays import NO_IDS, Floats, Ints
from emulator.messages import SampleRanges, Scores, Trigger
from emulator.seeding import RandomStreams

SAMPLES = 100
"""Samples that each client receives per data step."""


@dataclass
class Story:
    """`clusterer` with real models of two parameters, and claims kept as the memory keeps them.

    `window`: only the claims of the last step are remembered. `out_of_reach`: models whose claims no online
    client holds. `requests` are (clients, models, samples).
    """

    clusterer: Clusterer
    num_clients: int
    window: bool = False
    out_of_reach: Sequence[int] = ()
    seed: int = 0
    assignment: Assignment | None = None
    claimed: Ints = field(
        default_factory=lambda: NO_IDS
    )  # (M,), with the newest arrivals once a step is over
    newest: Ints = field(default_factory=lambda: NO_IDS)  # (M,) what the last step claimed
    requests: list[tuple[list[int], list[int], Samples]] = field(default_factory=list)
    limits: list[int | None] = field(default_factory=list)
    round: int = 0
    data_step: int = -1

    def __post_init__(self) -> None:
        self.bank = ModelBank(2)

    def start(self, concepts: Sequence[int] | None = None) -> Story:
        """The first data step, in which no request is made."""
        self.step(None, concepts=concepts)
        return self

    def step(
        self,
        arrived: npt.ArrayLike | None,
        *,
        across: npt.ArrayLike | None = None,
        offline: Sequence[int] = (),
        empty: Sequence[int] = (),
        late: bool = False,
        concepts: Sequence[int] | None = None,
    ) -> Assignment | None:
        """Data arrive at all clients; those `offline` cannot respond now, and `empty` ones get no samples.

        `late`: nothing arrives; a later round of the last data step, in which other clients are online.

        `arrived` (N, M): accuracy of each model on the arrivals. `across` (M, M): accuracy of model i on what
        is claimed for model j; by default each model is right on its own samples only.
        """
        self.data_step += not late
        online = np.setdiff1d(np.arange(self.num_clients), offline)
        score = self._scorer(
            arrived, np.eye(len(self.bank)) if across is None else np.array(across), online, empty
        )
        assignment = self.clusterer.on_data(self._view(score, changed=online, concepts=concepts))
        self._apply(assignment, late)
        self.round += 1
        return assignment

    def quiet_round(self) -> Assignment | None:
        """A round without arrivals, in the same data step."""
        return self.clusterer.on_data(self._view(self._scorer(None, np.eye(0), NO_IDS), changed=NO_IDS))

    @property
    def rows(self) -> list[int]:
        """The model of each client, as a row of the bank."""
        assert self.assignment is not None
        return self.assignment.members[:, 0].tolist()

    @property
    def models(self) -> list[list[float]]:
        models: list[list[float]] = self.bank.parameters.tolist()
        return models

    def train(self, *models: Sequence[float]) -> None:
        """Publish these models as the result of training."""
        self.bank.publish(np.array(models, dtype=np.float32), np.ones(len(models), dtype=bool))

    def _apply(self, assignment: Assignment | None, late: bool) -> None:
        # A later round claims the arrivals of the step again.
        older = self.claimed - self.newest if late else self.claimed
        if assignment is not None:
            assert np.allclose(assignment.mixing.sum(axis=1), 1.0)
            self.bank.apply(assignment)
            inherited = np.zeros(assignment.num_models, dtype=np.int64)
            continued = assignment.successor >= 0
            np.add.at(inherited, assignment.successor[continued], older[continued])
            older, self.assignment = inherited, assignment
        if self.window:
            older = np.zeros_like(older)
        self.newest = SAMPLES * np.bincount(self.rows, minlength=len(self.bank))
        self.claimed = older + self.newest

    def _scorer(self, arrived: npt.ArrayLike | None, across: Floats, online: Ints, empty: Sequence[int] = ()):
        def score(clients, models, samples, metrics=frozenset({"correct"}), limit=None) -> ScoreResponse:
            assert metrics == {"correct"}
            self.requests.append((clients.tolist(), models.tolist(), samples))
            self.limits.append(limit)
            responding = np.intersect1d(clients, online)
            if isinstance(samples, ClaimedBy):
                responding = responding if samples.model not in self.out_of_reach else NO_IDS
                assert self.claimed[samples.model] > 0, "no client has such samples"
                accuracy = np.tile(across[models, samples.model], (len(responding), 1))
            else:
                assert samples == "arrived"
                accuracy = np.array(arrived, dtype=np.float64)[np.ix_(responding, models)]
            counts = np.where(np.isin(responding, empty), 0, SAMPLES)
            return ScoreResponse(responding, Scores(counts, correct=accuracy * counts[:, None]))

        return score

    def _view(self, score, changed: Ints, concepts: Sequence[int] | None = None) -> View:
        everyone = np.arange(self.num_clients)
        ranges = SampleRanges.one_each(everyone, everyone + 1)
        return View(
            round=self.round,
            step=self.data_step,
            num_clients=self.num_clients,
            num_labels=2,
            streams=RandomStreams(self.seed),
            assignment=self.assignment,
            models=self.bank.parameters,
            model_ids=self.bank.ids,
            cluster_labels=self.bank.labels,
            layout={},
            reports=np.zeros((self.num_clients, 0)),
            holding=np.ones(self.num_clients, dtype=bool),
            distance="l1",
            drift={},
            changed=changed,
            participants=NO_IDS,
            updates=None,
            truth=lambda: None if concepts is None else np.array(concepts, dtype=np.int64),
            onset_truth=lambda: None,
            initial=lambda number: np.full(2, number, dtype=np.float32),
            held=ranges.take,
            arrived=lambda clients, first, last: ranges.take(clients),
            claimed=lambda: self.claimed.copy(),
            score=score,
            train=_no_training,
            expected_s=lambda ids: np.ones(len(ids)),
            local_steps=5,
            batch_size=20,
            learning_rate=0.1,
            log_trigger=_no_trigger,
        )


def _no_training(*request: object) -> NoReturn:
    raise AssertionError("nobody trains on request")


def _no_trigger(trigger: Trigger) -> NoReturn:
    raise AssertionError("none of these clusterers has a trigger")
