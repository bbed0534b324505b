"""The protocol of representations: what a client reports about the data that it holds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Protocol

from pydantic import Field

from coordinator.distances import DistanceName
from coordinator.view import Part
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Work
from emulator.numbers import Count, PositiveFactor
from emulator.plugins import Settings, returns
from emulator.seeding import RandomStreams

At = Literal["frozen", "global"]
"""The model with which clients measure: the reference model, which never changes, or the mean model."""


class ReferenceSettings(Settings):
    """The reference model: trained by the server before round 0, sent to every client, and never changed."""

    model: str | dict[str, Any] | None = Field(
        None,
        description="the reference model, as in `training.model`; if omitted, the arm's model",
        examples=["linear"],
    )
    per_label: Count = Field(
        200,
        description="it is trained on at most this many of the training samples of each label that clients "
        "hold at step 0; the log states the labels with fewer",
    )
    epochs: Count = Field(30, description="passes over these samples")
    batch_size: Count = Field(20, description="samples in a batch")
    learning_rate: PositiveFactor = Field(0.01, description="learning rate, with a momentum of 0.9")


class LocalData(Protocol):
    """The training samples that clients hold now, and what they can measure of them.

    In array shapes, L is the number of labels. Embeddings are taken at the reference model, gradients at it
    or at the mean of the present models. A client without samples measures zeros.
    """

    @property
    def num_labels(self) -> int:
        """L, the number of labels."""
        ...

    @property
    def streams(self) -> RandomStreams:
        """The random streams of the seed, for what all clients of a run share, such as a sketch."""
        ...

    @property
    def embedding_size(self) -> int:
        """The number of inputs of the reference model's last layer."""
        ...

    def num_parameters(self, at: At) -> int:
        """The number of parameters of the model `at` which gradients are taken."""
        ...

    def cost(self, at: At) -> float:
        """How many times as long as the arm's model this one computes, by the FLOPs of a forward pass."""
        ...

    def num_samples(self, clients: Ints) -> Ints:
        """(n,) the number of training samples that each of `clients` (n,) holds."""
        ...

    def label_histograms(self, clients: Ints) -> Floats:
        """(n, L) the shares of labels among the training samples of each of `clients` (n,)."""
        ...

    def embeddings(self, clients: Ints) -> Floats32:
        """(n, embedding_size) the mean input of the last layer over the samples of each of `clients` (n,)."""
        ...

    def gradients(self, clients: Ints, at: At) -> Floats32:
        """(n, P) the gradient of the mean loss over the training samples of each of `clients` (n,)."""
        ...


class Representation(Part):
    """Base of representations; built with its own frozen settings.

    A report is a vector of D numbers. It is measured by the client, which is charged for it.

    Attributes:
        distance: the distance between reports, unless a part names another one.
        shares: whether a report consists of shares: numbers from 0 on that sum to 1.
    """

    chance: ClassVar[str] = 'draw from data.streams.generator("my purpose", client)'
    distance: ClassVar[DistanceName]
    shares: ClassVar[bool] = False

    @property
    def reference(self) -> ReferenceSettings | None:
        """The reference model that clients measure with, and download when they register; None: no model."""
        return None

    @property
    def at_present_models(self) -> bool:
        """Whether clients measure with the present models, so that earlier reports are not comparable.

        Then all clients report whenever one of them has new data.
        """
        return False

    @abstractmethod
    @returns("coordinator.checks:size")
    def size(self, data: LocalData) -> int:
        """D, the number of numbers in a report.

        Args:
            data: what clients can measure.

        Raises:
            ConfigurationError: the settings do not fit the labels or the model.
        """

    @abstractmethod
    @returns("coordinator.checks:reports")
    def measure(self, clients: Ints, data: LocalData) -> Floats:
        """The reports that clients would send now.

        Args:
            clients: (n,) ids, ascending.
            data: what clients can measure of their samples.

        Returns:
            (n, D) finite numbers, or rows with NaN or infinity for clients whose reports cannot be used.
        """

    @returns("coordinator.checks:reporting_work")
    def work(self, clients: Ints, data: LocalData) -> Work:
        """What a report costs each client besides its upload; by default nothing.

        Samples are counted as passes through the arm's model: those through another model are multiplied by
        `LocalData.cost`.

        Args:
            clients: (n,) ids, ascending.
            data: what clients can measure of their samples.

        Returns:
            Columns of shape (n,).
        """
        return Work.of(len(clients))
