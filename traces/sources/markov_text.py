"""Texts of authors that are Markov chains, whose entropy rate is known exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Number, Share
from emulator.ports import Tokens
from traces.images import ImageSet, stratified_split
from traces.sources.base import DataSeed, TraceContext
from traces.sources.mixed_images import MixedImages, MixedImagesSettings

SYMBOLS = "abcdefghijklmnopqrstuvwxyz ."
"""What the tokens stand for, in the order of their ids."""

BY_PAIR = 5.0
"""Dirichlet concentration of what follows a pair around what follows its last symbol."""

BACKGROUND = 0.01
"""Share of each row that is spread evenly, so that any symbol may follow any other."""

TEST_SHARE = 0.3

MOST_TOKENS = 2**26
"""Most tokens of all texts: one takes some ten bytes while texts are drawn."""


class MarkovTextSettings(MixedImagesSettings):
    """The authors and their texts, and the settings of all image sources with a drift."""

    authors: Annotated[int, Number(ge=1, le=100)] = Field(
        8, description="how many authors there are; the author is the label of a text", examples=[4]
    )
    difference: Share = Field(
        0.5,
        description="how much authors differ: the share of pairs of symbols after which an author continues "
        "in a way of its own; after the others, all continue alike",
        examples=[0.2],
    )
    concentration: Annotated[float, Number(ge=0.01, le=1e6)] = Field(
        0.1,
        description="Dirichlet concentration of what follows a symbol: the lower, the fewer symbols follow "
        "it, and the better a text can be foretold",
        examples=[0.05],
    )
    length: Annotated[int, Number(ge=2, le=4096)] = Field(80, description="tokens of a text", examples=[40])
    texts: Annotated[int, Number(ge=2, le=10**7)] = Field(
        500, description="texts of each author, of which 0.3 are for tests without `split`", examples=[200]
    )
    data_seed: DataSeed = 0


class MarkovText(MixedImages):
    """Texts of authors, each a Markov chain of order 2 over 28 symbols; needs no file.

    The symbols are a to z, space and full stop, with the ids 0 to 27. Of an author's table (28, 28, 28), row
    (a, b) says how likely each symbol follows a, b: what follows b is drawn from a Dirichlet distribution,
    and around it what follows a, b; 0.01 of each row is spread evenly. The row is the author's own with the
    chance `difference`, or that of a common table, which is drawn alike. A text begins with a pair of the
    stationary distribution. A model is trained to tell the next token, and its loss, in nats, is at least the
    `entropy_rate` of the author's table.

    Clients differ, and drift, in the shares of authors, which are the labels of texts: see `drift`.

    Source: ours.

    >>> from emulator.seeding import RandomStreams
    >>> settings = MarkovTextSettings(clients=2, authors=4, length=40, texts=10)
    >>> context = TraceContext(rounds=20, streams=RandomStreams(0), locate=str)
    >>> trace = MarkovText(settings).build(context)
    >>> "".join(SYMBOLS[int(token)] for token in trace.features(np.array([0]))[0])
    'meupgxceyzpe. yitzarxqe kzajeym.byitfpje'
    >>> [round(entropy_rate(table), 2) for table in author_tables(settings, context)]
    [1.23, 1.23, 1.26, 1.29]
    """

    Settings = MarkovTextSettings
    settings: MarkovTextSettings

    def images(self, context: TraceContext) -> ImageSet:
        settings = self.settings
        if settings.authors * settings.texts * settings.length > MOST_TOKENS:
            raise ConfigurationError(
                f"trace: {settings.authors} authors x {settings.texts} texts x {settings.length} tokens are "
                f"more than the {MOST_TOKENS} of such a trace; lower texts or length"
            )
        streams = context.data_streams(settings.data_seed)
        texts = [
            drawn_texts(table, settings.texts, settings.length, streams.generator("texts", author))
            for author, table in enumerate(author_tables(settings, context))
        ]
        labels = np.repeat(np.arange(settings.authors), settings.texts)
        train, test = stratified_split(labels, TEST_SHARE, streams.generator("split"))
        pool = ImageSet(np.concatenate(texts), 1.0, labels, settings.authors, train, test)
        told = replace(pool, tokens=Tokens(len(SYMBOLS)), objective={"kind": "next_token"})
        return self._in_split(told, context, settings.labels)


def author_tables(settings: MarkovTextSettings, context: TraceContext) -> list[Floats]:
    """The tables of all authors, each (28, 28, 28): row (a, b) says how likely each symbol follows a, b."""
    streams = context.data_streams(settings.data_seed)
    common, tables = _table(settings.concentration, streams.generator("common table")), []
    for author in range(settings.authors):
        generator = streams.generator("table", author)
        own = _table(settings.concentration, generator)
        is_own = generator.random(own.shape[:2]) < settings.difference
        tables.append(np.where(is_own[..., None], own, common))
    return tables


def entropy_rate(table: Floats) -> float:
    """The least mean loss of any model that tells the next token of long texts, in nats.

    Args:
        table: (symbols, symbols, symbols), row (a, b) says how likely each symbol follows a, b. Rows sum to
            1, and from any pair a text comes to any other one.

    Returns:
        The entropy of each row, weighted by how often its pair occurs.
    """
    logarithms = np.log(table, where=table > 0, out=np.zeros(table.shape))
    return float(-(stationary_pairs(table) * (table * logarithms).sum(axis=2)).sum())


def stationary_pairs(table: Floats) -> Floats:
    """(symbols, symbols) how often each pair occurs in a long text of a `table`, as for `entropy_rate`."""
    symbols = len(table)
    pairs = np.arange(symbols**2).reshape(symbols, symbols)
    balance = -np.eye(symbols**2)
    balance[pairs[None, :, :], pairs[:, :, None]] += table  # to b, c from a, b
    balance[0] = 1  # one equation follows from the others: the shares sum to 1, instead
    shares = np.linalg.solve(balance, np.eye(symbols**2)[0])
    return np.maximum(shares, 0).reshape(symbols, symbols)


def drawn_texts(table: Floats, number: int, length: int, generator: np.random.Generator) -> np.ndarray:
    """(number, length) texts of a `table`, as for `entropy_rate`: ids, uint8."""
    symbols = len(table)
    texts = np.empty((number, length), dtype=np.uint8)
    pair = _drawn(np.cumsum(stationary_pairs(table)), 0 * np.arange(number), symbols**2, generator)
    texts[:, 0], texts[:, 1] = np.divmod(pair, symbols)
    # Rows one behind the other: that of a pair begins at its number.
    ends = (np.cumsum(table, axis=2).reshape(-1, symbols) + np.arange(symbols**2)[:, None]).ravel()
    for place in range(2, length):
        texts[:, place] = _drawn(ends, pair, symbols, generator)
        pair = pair % symbols * symbols + texts[:, place]
    return texts


def _drawn(ends: Floats, row: Ints, size: int, generator: np.random.Generator) -> Ints:
    """(n,) what is drawn for each of n texts by its row (n,): `ends` (rows * size,) are rows + their sums."""
    found = np.searchsorted(ends, row + generator.random(len(row)), side="right")
    drawn: Ints = np.minimum(found - row * size, size - 1)  # sums are 1 but for rounding
    return drawn


def _table(concentration: float, generator: np.random.Generator) -> Floats:
    """(28, 28, 28) a table as it is drawn."""
    number = len(SYMBOLS)
    after = _dirichlet(np.full((number, number), concentration), generator)
    rows = _dirichlet(np.broadcast_to(BY_PAIR * after, (number, number, number)), generator)
    return (1 - BACKGROUND) * rows + BACKGROUND / number


def _dirichlet(concentration: Floats, generator: np.random.Generator) -> Floats:
    """Shares of the last axis; numbers of gamma distributions that underflow are as good as 0."""
    drawn = np.maximum(generator.standard_gamma(concentration), 1e-300)
    shares: Floats = drawn / drawn.sum(axis=-1, keepdims=True)
    return shares
