"""The protocol of drift detectors: which clients drifted, by what they report, or by how they train."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from coordinator.view import Part
from emulator.arrays import Bools, Floats, Ints
from emulator.plugins import returns

Watches = Literal["representation", "arrivals", "training"]
"""What a detector can watch: the representation of a client's data, what arrives for it, or its training."""


class Detector(Part):
    """Base of detectors; built with its own frozen settings.

    `watches` says what it is given, and when. "representation": what clients measure of their new data, as
    `round.hear` says, before they report; its flags are in `View.drift` of `Clusterer.on_data`. "arrivals":
    at each dispatch, how many of the samples that have arrived for a participant since its last visit the
    model predicts that it receives now; its flags are in `View.drift` of the schedules. "training": after
    each server step, what the clients have measured in their local batches whose updates it absorbs; its
    flags are in `View.drift` of `Clusterer.on_updates`. The latter two run on the clients, and a flag
    travels with the update. Predictions of arrivals take their time of the visit, and all else costs
    nothing. One that watches training has one entry of `needs`, which names the signal; others have none.

    `threshold` names the setting, a number, that says how easily it flags: a configuration may give several
    `thresholds`, at each of which it is played. None, the default, if there is no such setting.

    What it remembers of a client must not depend on other clients.
    """

    chance: ClassVar[str] = 'draw from self.streams.generator("my purpose", number of the draw)'
    watches: ClassVar[Watches] = "representation"
    threshold: ClassVar[str | None] = None

    def open(self, num_clients: int) -> None:
        """Prepare for a run with so many clients, before anything else is called; does nothing by default.

        Args:
            num_clients: N; clients have ids from 0 to N - 1.
        """

    def forget(self, clients: Ints) -> None:
        """Forget what it remembers of clients that hold no data any more; does nothing by default.

        Args:
            clients: (n,) client ids, ascending.
        """

    @property
    def bytes_per_client(self) -> int:
        """What it remembers of each client, at least; 0 by default. Runs that lack the memory are refused."""
        return 0

    @property
    def clipped(self) -> int:
        """The values so far that were outside of its domain, and so clipped; 0 by default."""
        return 0

    @abstractmethod
    @returns("coordinator.checks:flags")
    def detect(self, clients: Ints, signal: Floats, last: Floats | None) -> Bools:
        """Which of n clients drifted.

        A detector that watches representations is asked about clients that have reported before; those that
        have not always report. One that watches arrivals is asked about participants for whom samples have
        arrived, and one that watches training about the clients of an absorbed update.

        Args:
            clients: (n,) client ids, each once, in any order.
            signal: (n, D) the representation that each client measures now; (n, 2) how many of its new
                samples are predicted correctly, and how many there are; or (n, steps) the number of each of
                its local batches, in order, NaN behind the last.
            last: (n, D) the representation that it reported last; None unless it watches representations.

        Returns:
            (n,) bools.
        """
