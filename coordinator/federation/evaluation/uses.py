"""Several uses of one training: other adaptations beside that of the run, each with figures of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from coordinator.adaptations import Adaptation
from coordinator.federation.evaluation.adapting import Adapting, Before
from coordinator.federation.stored_parts import StoredParts
from emulator.arrays import Ints
from emulator.errors import RunError
from emulator.storage.runlog import RoundRecord
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful

OF_A_USE = ("adapting", "adaptation")
"""The stored parts of a run that are those of its use; all others are of the training."""


class UseError(RunError):
    """The error of the use that a run trains for, in an evaluation: its other uses may go on.

    `others` has the errors of those that have ended, too, by a name of theirs.
    """

    others: Mapping[str, str] = MappingProxyType({})


class Use:
    """A use of the models that a run trains: its `adaptation`, and who is told of its rounds.

    What it does changes neither the training nor any other use, and what it is told and stores is what a run
    of its own would log and store. An error of its own ends it alone; `error` is that error. Unless it
    `goes_on` it is told nothing more.
    """

    def __init__(self, adaptation: Adaptation, tell: Callable[[RoundRecord], None]) -> None:
        self.adaptation = adaptation
        self.tell = tell
        self.adapting: Adapting | None = None
        self.goes_on = True
        self.error: RunError | None = None
        self._own: Mapping[str, Stateful] = {}
        self._stored = StoredParts({})

    def begin(self, adapting: Adapting | None, parts: Mapping[str, Stateful]) -> None:
        """Take what applies the adaptation, None for none, and the stored `parts` of the run that trains.

        Called once, before the first round.
        """
        self.adapting = adapting
        self._own = {"adaptation": self.adaptation} | ({} if adapting is None else {"adapting": adapting})
        shared = {name: part for name, part in parts.items() if name not in OF_A_USE}
        self._stored = StoredParts({**shared, **self._own})

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Context in which a RunError ends this use, and nothing else."""
        try:
            yield
        except RunError as error:
            self.goes_on, self.error = False, error

    def state(self) -> dict[str, Tree]:
        """The stored parts of a run with this use; RunError as `StoredParts.state` raises it."""
        return self._stored.state()

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from the stored parts of a run with this use: what it does not share with the others.

        Raises KeyError if they are not of one.
        """
        for name, part in self._own.items():
            part.restore(state[name])


class Uses:
    """`all` other uses of a run, in the order in which they were given."""

    def __init__(
        self,
        uses: Sequence[Use],
        build: Callable[[Adaptation], Adapting | None],
        parts: Mapping[str, Stateful],
    ) -> None:
        """`build` makes what applies an adaptation, None for none; `parts` are those that are stored."""
        self.all = uses
        for use in uses:
            use.begin(build(use.adaptation), parts)

    def before_opening(self, round_: int, now_s: float) -> dict[Use, Before]:
        """What each takes note of as `round_` is about to be opened; see `Adapting.before_opening`."""
        found: dict[Use, Before] = {}
        for use in self.all:
            if use.goes_on and use.adapting is not None:
                found[use] = use.adapting.before_opening(round_, now_s)
        return found

    def opens(
        self, round_: int, now_s: float, before: Mapping[Use, Before], changed: Ints, joined: Ints, left: Ints
    ) -> None:
        """Have each take note that `round_` is opened; see `Adapting.opens`."""
        for use in before:
            with use.alone():
                assert use.adapting is not None
                use.adapting.opens(round_, now_s, before[use], changed, joined, left)


def trains_alike(adaptation: Adaptation) -> bool:
    """Whether a run with this adaptation trains as one without, whatever the other parts are.

    One that needs shares of labels must have clients report them anyway (`Parts.always_reports_labels`).
    """
    return adaptation.federates and not (adaptation.reads or adaptation.hears or adaptation.needs)
