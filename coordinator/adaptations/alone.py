"""No federation: each client trains a model of its own."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.adaptations.base import Adaptation, ClientView, Served, Trained
from emulator.arrays import Floats32, Ints
from emulator.messages import InferencePlan, Work
from emulator.numbers import MOST_STEPS, Number
from emulator.plugins import Settings

ROUNDING = 1e-9
"""What is added before steps are counted: 100 rounds of 0.29 steps are 29 steps."""


class AloneSettings(Settings):
    """How much each client trains."""

    steps_per_round: Annotated[float, Number(gt=0, le=MOST_STEPS)] | None = Field(
        None,
        description="local steps of each client per round, fractions are carried; if omitted, those of a "
        "federation without drop-outs: round.participants x training.local_steps / clients, or "
        "the steps of training.local_epochs over what it holds",
        examples=[2.5],
    )
    times: Annotated[float, Number(gt=0, le=1000)] = Field(
        1.0, description="how often these steps are taken: 10 for ten times the work of a federation"
    )

    @model_validator(mode="after")
    def _says_how_much_once(self) -> Self:
        if self.steps_per_round is not None and self.times != 1:
            raise ValueError(f"times = {self.times:g} beside steps_per_round: give one of them")
        return self


class Alone(Adaptation):
    """Each client trains its own model from the run's initial one, also offline; nothing is transferred.

    Rounds are opened, selected and timed as those of one model, so that both see the same data at the same
    time. After r rounds steps_per_round x r steps are due, rounded down, in visits of training.local_steps
    (or local_epochs), at each of which a rule such as momentum begins anew; a visit ends when the client's
    data change, and the solver's state then starts anew. A client is evaluated with a copy that has taken all
    steps that are due. Steps of rounds in which it holds no samples are not made up for. Short batches are
    counted as if passes had begun with the run. It needs whole rounds: what is due follows the visits of one
    cohort per round.

    State: (S, P) the models of the scored clients after their last visit, (S,) the steps that were due then,
    of these (S,) the ones before its data last changed, after (S,) which round that was, and the solver's
    state of each. Others need not be trained, as nobody sees their models.

    Source: ours: local training, the usual rival without a federation.

    Two clients that take 1.5 steps per round, of which each moves a model by 1; after three rounds 4 are due:

    >>> from types import SimpleNamespace
    >>> from coordinator.adaptations.base import Trained
    >>> view = SimpleNamespace(
    ...     clients=np.array([7, 9]),
    ...     scored=np.array([7, 9]),
    ...     num_samples=np.array([5, 5]),
    ...     rounds=3,
    ...     local_steps=np.array([10, 10]),
    ...     initial=lambda number: np.zeros(1),
    ...     train=lambda models, start, steps, state, taken: Trained(models[start] + steps[:, None], {}),
    ... )
    >>> Alone(AloneSettings(steps_per_round=1.5)).adapt(view).models.tolist()
    [[4.0], [4.0]]
    """

    Settings = AloneSettings
    settings: AloneSettings
    needs_whole_rounds = True
    state_fields = ("_models", "_steps", "_before", "_changed", "_solver")
    serves_one: ClassVar[bool] = True
    federates: ClassVar[bool] = False
    keeps_models = True

    def __init__(self, settings: AloneSettings) -> None:
        super().__init__(settings)
        self._models: Floats32 | None = None
        self._steps: Ints = np.zeros(0, dtype=np.int64)
        self._before: Ints = np.zeros(0, dtype=np.int64)
        self._changed: Ints = np.zeros(0, dtype=np.int64)
        self._solver: dict[str, Floats32] = {}

    def adapt(self, view: ClientView) -> Served:
        rows, left = self._after_whole_visits(view)
        return Served(self._trained(view, rows, left).models, InferencePlan.own(len(rows)))

    def work(self, view: ClientView) -> Work | None:
        # Which batches of an epoch are short follows from all steps, not from those of a round.
        before, now = (view.samples(self._due(view, rounds)) for rounds in (view.rounds - 1, view.rounds))
        return Work.of(len(view.clients), trained_samples=now - before)

    def data_changes(self, view: ClientView) -> None:
        rows, left = self._after_whole_visits(view)
        self._take(view, rows, left)
        self._before[rows], self._changed[rows] = self._steps[rows], view.rounds
        for columns in self._solver.values():
            columns[rows] = 0.0

    def _after_whole_visits(self, view: ClientView) -> tuple[Ints, Ints]:
        """(n,) the rows of the view's clients, once they have made the visits that are due as a whole.

        And (n,) the steps that are due beyond these, fewer than a visit has.
        """
        if self._models is None:
            self._models = np.tile(view.initial(0), (len(view.scored), 1))
            self._steps, self._before, self._changed = np.zeros((3, len(view.scored)), dtype=np.int64)
        rows = np.searchsorted(view.scored, view.clients)
        # How much a client takes per round may follow from what it holds, and change with that.
        due = self._due(view, view.rounds) - self._due(view, self._changed[rows]) + self._before[rows]
        without = view.num_samples == 0
        self._steps[rows[without]] = due[without]
        while True:
            left = due - self._steps[rows]
            whole = np.where(left >= view.local_steps, view.local_steps, 0)
            if not whole.any():
                return rows, left
            self._take(view, rows, whole)

    def _take(self, view: ClientView, rows: Ints, steps: Ints) -> None:
        """Let the clients of `rows` (n,) take `steps` (n,), and keep what comes out."""
        assert self._models is not None
        trained = self._trained(view, rows, steps)
        self._models[rows] = trained.models
        self._steps[rows] += steps
        for name, columns in trained.state.items():
            if name not in self._solver:
                shape = (len(view.scored), columns.shape[1])
                self._solver[name] = np.zeros(shape, dtype=columns.dtype)
            self._solver[name][rows] = columns

    def _trained(self, view: ClientView, rows: Ints, steps: Ints) -> Trained:
        """The models of `rows` (n,) after `steps` (n,) more, and the solver's state then."""
        assert self._models is not None
        state = {name: columns[rows] for name, columns in self._solver.items()} or None
        models = self._models[rows]
        if not steps.any():
            return Trained(models, state or {})
        return view.train(models, np.arange(len(rows)), steps, state=state, taken=self._steps[rows])

    def _due(self, view: ClientView, rounds: int | Ints) -> Ints:
        """(n,) the steps that would be due after so many rounds, all of them with what clients hold now."""
        per_round = self.settings.steps_per_round
        if per_round is None:
            due = self.settings.times * view.steps_per_client * rounds
        else:
            due = np.full(len(view.clients), per_round) * rounds
        return np.floor(due + ROUNDING).astype(np.int64)
