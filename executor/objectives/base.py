"""`Objective`: the base of all objectives, what a model is trained on and scored by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.plugins import Configured, returns
from emulator.ports import SampleReader, Tokens, WithTargets
from traces.files.features import FINITE, ValueRule

Reads = Literal["labels", "tokens", "targets"]
"""What of its samples an objective is about: their labels, the tokens that they are, or further targets."""


class Objective(Configured, ABC):
    """Base of the objectives: the loss of each sample, which training lessens, and its hits.

    The mean of hits is what logs, frames and reports have as accuracy, whatever `word` they show. Arrays have
    a row for each of n samples: `outputs` (n, *output_shape) are a model's, `targets` (n, *target_shape) what
    they are to be. A sample counts by itself: its numbers do not depend on others of its batch.

    Attributes:
        reads: what samples must have; one without it is refused.
        rule: what targets beside the label must be; others are refused.
        word: what the mean of hits is called.
    """

    reads: ClassVar[Reads] = "targets"
    rule: ClassVar[ValueRule] = FINITE

    @property
    @abstractmethod
    def word(self) -> str:
        """What the mean of hits is called, such as "tokens right"."""

    @abstractmethod
    @returns("executor.checks:losses")
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(n,) the loss of each sample, which can be differentiated by the outputs."""

    @abstractmethod
    @returns("executor.checks:hits")
    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(n,) how much of each sample is right, in [0, 1]: higher is better."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """() the mean loss of a batch."""
        return self.losses(outputs, targets).mean()

    @returns("executor.checks:hits")
    def errors(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(n,) how much of each sample is wrong, as detectors watch it."""
        return 1 - self.hits(outputs, targets)

    def predicted(self, outputs: Tensor) -> Tensor:
        """What is averaged over several models that serve a client, of the shape of outputs."""
        return outputs

    def outputs_of(self, predicted: Tensor) -> Tensor:
        """Outputs whose `predicted` is that."""
        return predicted

    def num_outputs(self, reader: SampleReader) -> int:
        """How many numbers a model makes of a sample, or of each of its tokens: of what is read, one each."""
        tokens = tokens_of(reader)
        if self.reads == "tokens" and tokens is not None:
            return tokens.vocabulary
        return reader.num_labels if self.reads == "labels" else num_targets(reader)

    def output_shape(self, sample_shape: tuple[int, ...], num_outputs: int) -> tuple[int, ...]:
        """The shape of the outputs for a sample: of tokens, some at the place of each."""
        return (*sample_shape, num_outputs) if self.reads == "tokens" else (num_outputs,)

    def targets(self, reader: SampleReader, rows: Ints) -> Tensor:
        """(n, *target_shape) the targets of some table rows (n,): what is read of them."""
        if self.reads == "tokens":
            return torch.from_numpy(reader.features(rows)).long()
        read = reader.labels(rows) if self.reads == "labels" else cast(WithTargets, reader).targets(rows)
        return torch.from_numpy(read)

    def check(self, reader: SampleReader, name: str) -> None:
        """ConfigurationError, with the objective's `name`, if samples of a reader have not what it reads."""
        if self.reads == "tokens" and tokens_of(reader) is None:
            raise ConfigurationError(
                f"training.objective = {name!r}: tells tokens, and samples here are no tokens; choices: a "
                f"trace of tokens, such as markov_text, or 'labels'"
            )
        if self.reads == "targets" and num_targets(reader) == 0:
            raise ConfigurationError(
                f"training.objective = {name!r}: samples here have no targets beside their label; choices: a "
                f"trace folder with targets.npy, or 'labels'"
            )


def tokens_of(reader: SampleReader) -> Tokens | None:
    """What the tokens of a reader's samples are; None: samples are no tokens."""
    return getattr(reader, "tokens", None)


def num_targets(reader: SampleReader) -> int:
    """How many targets samples of a reader have beside their label."""
    return int(getattr(reader, "num_targets", 0))
