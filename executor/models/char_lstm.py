"""The recurrent network of characters that federated benchmarks train on Shakespeare's plays."""

from __future__ import annotations

from torch import Tensor, nn

from emulator.errors import ConfigurationError
from executor.models.base import ModelSpec
from executor.models.settings import CharLstmSettings


class CharLstm(ModelSpec):
    """Looks up each token of a text, reads them with stacked LSTM layers, and tells which one follows each.

    Five tokens, of 2 numbers each, and one layer of 3 units: 10 numbers to look up, 12 x (2 + 3) weights and
    2 x 12 biases of the layer, and 5 x 3 + 5 of the logits.

    Source: Caldas et al. 2018 (LEAF), models/shakespeare/stacked_lstm.py, which tells the character behind a
    text alone, and has one bias where torch has two.

    >>> import torch
    >>> model = CharLstm(CharLstm.Settings(embedding=2, hidden=3, layers=1)).build((7,), num_outputs=5)
    >>> sum(parameter.numel() for parameter in model.parameters())
    114
    >>> model(torch.zeros(4, 7, dtype=torch.int64)).shape
    torch.Size([4, 7, 5])
    """

    Settings = CharLstmSettings

    stacks = False
    tells_next_token = True

    def build(self, sample_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
        text_length("char_lstm", sample_shape)
        settings = self.settings
        lstm = nn.LSTM(settings.embedding, settings.hidden, settings.layers, batch_first=True)
        embedding = nn.Embedding(num_outputs, settings.embedding)
        return ReadingInOrder(embedding, lstm, nn.Linear(settings.hidden, num_outputs))


class ReadingInOrder(nn.Module):
    """Maps texts (n, tokens) to logits (n, tokens, vocabulary), each from the tokens up to its own."""

    def __init__(self, embedding: nn.Embedding, lstm: nn.LSTM, head: nn.Linear) -> None:
        super().__init__()
        self.embedding, self.lstm, self.head = embedding, lstm, head

    def forward(self, texts: Tensor) -> Tensor:
        logits: Tensor = self.head(self.lstm(self.embedding(texts))[0])
        return logits


def text_length(model: str, sample_shape: tuple[int, ...]) -> int:
    """The tokens of a text; ConfigurationError, in the name of the model, if samples have another shape."""
    if len(sample_shape) != 1:
        raise ConfigurationError(
            f"model {model} takes texts, samples of shape (tokens,), not of shape {sample_shape}"
        )
    return sample_shape[0]
