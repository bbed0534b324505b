"""The protocol of aggregators: how updates make new models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from coordinator.view import Part, View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.plugins import returns


class Aggregator(Part):
    """Base of aggregators; built with its own frozen settings.

    Attributes:
        broadcasts: The names of the arrays that are sent to clients along with the models. Local rules read
            them, and an aggregator can be only beside rules that read all of them.
        averages: The slots of local rules whose mean over the clients of each model it reads, from
            `view.remembered`: in `broadcast`, and in `aggregate` as it is after the updates. They must end
            with their `model`, and it needs whole rounds.
    """

    broadcasts: ClassVar[frozenset[str]] = frozenset()
    averages: ClassVar[frozenset[str]] = frozenset()

    @property
    def shares(self) -> Mapping[str, float]:
        """The numbers that the solver must have, too (`LocalRule.shares`): only with these are both right.

        A name is that of the rule, a dot and that of one of its settings; none by default.
        """
        return {}

    @property
    @returns("coordinator.checks:noted")
    def noted(self) -> Mapping[str, float]:
        """Finite numbers of its last `aggregate`, by name, for the log: `RoundRecord.noted`; none by default.

        Of several server steps in a round, the last one's are logged. Names are as in
        `emulator.messages.NamedNumbers`, at most 16 in all rounds of a run.
        """
        return {}

    @returns("coordinator.checks:broadcast")
    def broadcast(self, view: View) -> Mapping[str, Floats32]:
        """What is sent along with each model, frozen at dispatch as the models are.

        A row may change only with its model, or with what is `remembered` of it: in a server step with
        updates of it, or as models or their members change.

        Args:
            view: the facts of this moment, a dispatch.

        Returns:
            For each of `broadcasts` an array of shape (M, P).
        """
        return {}

    @returns("coordinator.checks:weights")
    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats | None:
        """The weights that `aggregate` will use, if they are known before the tasks are trained.

        With them an executor with several ranks exchanges weighted sums instead of updates.

        Args:
            model: (n,) bank id of each task's model.
            num_samples: (n,) training samples of each task.
            view: the facts of this moment; `view.staleness` is that of each task.

        Returns:
            (M, n) the argument of the one `updates.weighted_sum` that `aggregate` calls if all updates are
            finite; None (the default) if it does something else, or if the weights depend on the updates.
            Of very many models, `aggregate` may sum some at a time.
        """
        return None

    @abstractmethod
    @returns("coordinator.checks:models")
    def aggregate(self, updates: Updates, view: View) -> Floats32:
        """The models of the bank after a server step.

        Args:
            updates: the finite updates of completed visits, a row per task; a task of a client without
                samples has `num_samples` 0.
            view: the facts of this moment; `view.models` (M, P) are the models before the step.

        Returns:
            (M, P) float32; the row of a model without updates is unchanged.
        """
