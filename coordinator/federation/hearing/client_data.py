"""What clients can measure of the samples they hold: the `LocalData` of representations."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.federation.bank import ModelBank
from coordinator.representations import At
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import BYTES_PER_PARAMETER, SampleRanges
from emulator.ports import Executor, Meter, SampleStream
from emulator.seeding import RandomStreams


@dataclass(frozen=True)
class Reference:
    """The reference model: trained before round 0, the same for all arms of a seed, and never changed.

    `parameters` (P,) are those of a model of `executor`, trained on `samples` (L,) samples of each label. It
    computes `cost` times as long as the arm's model, by the FLOPs of a forward pass. One `of_arm` is that
    model, whose frozen parameters clients are sent once for both.
    """

    executor: Executor
    parameters: Floats32
    samples: Ints
    cost: float
    of_arm: bool = True

    @property
    def num_bytes(self) -> float:
        """What a download of the model takes, without what is charged with the arm's."""
        frozen = 0 if self.of_arm else self.executor.solver.base
        return float(BYTES_PER_PARAMETER * (len(self.parameters) + frozen))


class ClientData:
    """Implements `coordinator.representations.LocalData` for the clients of `stream`.

    `reference` is None if the arm's representation does not need it.
    """

    def __init__(
        self,
        *,
        stream: SampleStream,
        bank: ModelBank,
        executor: Executor,
        reference: Reference | None,
        streams: RandomStreams,
        meter: Meter,
    ) -> None:
        self.streams = streams
        self.num_labels = stream.num_labels
        self._stream = stream
        self._bank = bank
        self._executor = executor
        self.reference = reference
        self._meter = meter

    @property
    def embedding_size(self) -> int:
        return self._frozen.executor.embedding_size

    def num_parameters(self, at: At) -> int:
        return len(self._frozen.parameters) if at == "frozen" else self._executor.num_parameters

    def cost(self, at: At) -> float:
        return self._frozen.cost if at == "frozen" else 1.0

    def num_samples(self, clients: Ints) -> Ints:
        return self._held(clients).counts()

    def label_histograms(self, clients: Ints) -> Floats:
        return self._stream.label_histograms(clients)

    def embeddings(self, clients: Ints) -> Floats32:
        with self._meter("report_s"):
            return self._frozen.executor.embeddings(self._frozen.parameters, self._held(clients))

    def gradients(self, clients: Ints, at: At) -> Floats32:
        samples = self._held(clients)
        with self._meter("report_s"):
            if at == "frozen":
                return self._frozen.executor.gradients(self._frozen.parameters, samples)
            return self._executor.gradients(self._mean_model(), samples)

    def _held(self, clients: Ints) -> SampleRanges:
        return self._stream.held(clients, "train")

    @property
    def _frozen(self) -> Reference:
        assert self.reference is not None, "the representation declares no reference"
        return self.reference

    def _mean_model(self) -> Floats32:
        """(P,) the mean of the present models; before there are any, the initial one."""
        models = self._bank.parameters
        if len(models) == 0:
            return self._executor.initial(0)
        mean: Floats32 = models.mean(axis=0, dtype=float).astype(models.dtype)
        return mean
