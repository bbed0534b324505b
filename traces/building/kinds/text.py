"""Texts of clients, as ids of tokens: a folder of them, a table of lines, or LEAF's Shakespeare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from emulator.errors import DataFileError
from emulator.numbers import Number, Share
from emulator.storage.bounded import read_text
from emulator.storage.reading.columns import TEXT
from emulator.storage.reading.dialects import Dialect
from emulator.storage.reading.shards import find_shards
from emulator.storage.reading.tally import MOST_TEXT
from traces.building.bad_rows import BadRows
from traces.building.base import Builder, BuilderSettings, Built, Request
from traces.building.kinds.documents import field, read_document
from traces.building.rows import TRAIN, Rows, with_tests
from traces.building.table.build import write_trace
from traces.building.table.encoders.samples import Samples
from traces.building.table.frame import FrameColumns
from traces.building.table.keys import ONE_CLASS, ROWS, read_keys, refuse_types
from traces.building.table.settings import TableSettings
from traces.building.workspace import workspace
from traces.files.facts import MOST_TOKENS, TokenFacts
from traces.held_out import TEST_SHARE

PADDING, UNKNOWN = 0, 1
"""The ids of no token: what fills up, and a word that is none of the vocabulary."""

Texts = Mapping[str, Sequence[str]]
"""The lines of each client."""


class TextSettings(BuilderSettings):
    """What a token is, and how many a sample has."""

    length: Annotated[int, Number(ge=2, le=4096)] = Field(
        81, description="tokens of a sample, of which all but the first are told"
    )
    words: Annotated[int, Number(ge=1, le=MOST_TOKENS - 2)] | None = Field(
        None, description="tokens are words, so many: the commonest of training rows; without it, characters"
    )
    test_share: Share = Field(
        TEST_SHARE, description="share of each client's samples of each label that is held out for tests"
    )


class Text(Builder):
    """Texts of clients as ids of characters or words, for models that tell the next one.

    A line is cut into samples of `length` tokens, which overlap by one, so that each token but the first of
    the line is told once; the last one is filled up with id 0. Without a column of times, lines arrive in
    their order.
    """

    needs = (
        "a folder of .txt files, one for each client; a table with the columns client and text, and perhaps "
        "time and label; or a .json of LEAF's Shakespeare"
    )

    Settings = TextSettings
    settings: TextSettings

    def build(self, request: Request) -> Built:
        root, own = request.root, self.settings
        table, rows, lines = self._lines(root)
        cut = [self._cut(line) for line in lines]
        rows = with_tests(_taken(rows, [len(pieces) for pieces in cut], root), own.seed, own.test_share)
        assert rows.split is not None, "tests are held out"
        ids, vocabulary, note = self._ids([piece for pieces in cut for piece in pieces], rows.split == TRAIN)
        tokens = TokenFacts(vocabulary=vocabulary, padding=PADDING)
        columns = FrameColumns(
            files=(root,),
            kinds={},
            format="Arrow",
            dialect=Dialect(),
            most_cells=own.most_cells,
            names=(),
            columns={},
            num_rows=len(ids),
            classes=None,
        )
        plan = {"kind": "text"}
        with workspace(request.out, plan, fresh=request.fresh, nothing_after=BaseException) as space:
            space.record({})  # what an attempt that was killed left of other texts, perhaps, is written anew
            return write_trace(
                table.model_copy(update={"tokens": tokens}),
                columns,
                lambda bad: (rows.noting(note), Samples(ids, bad)),
                request,
                space,
                objective={"kind": "next_token"},
            )

    def _lines(self, root: Path) -> tuple[TableSettings, Rows, Sequence[str]]:
        """What is known of each line, and the lines."""
        own = self.settings
        # Tests are held out here, as words are counted in training rows; tokens are none until then.
        given: dict[str, Any] = {"seed": own.seed, "most_cells": own.most_cells, "test_share": 0}
        given |= {"client": "client", "tokens": {"vocabulary": MOST_TOKENS}}
        if root.is_dir() or root.suffix == ".json":
            texts = _of_folder(root) if root.is_dir() else _of_leaf(root)
            lines = [line for name in sorted(texts) for line in texts[name]]
            client = np.repeat(np.arange(len(texts)), [len(texts[name]) for name in sorted(texts)])
            nothing, names = np.zeros(len(lines), np.int32), tuple(sorted(texts))
            rows = Rows(
                client=client,
                clients=names,
                label=nothing,
                classes=ONE_CLASS,
                when="order",
                at=nothing.copy(),
            )
            return TableSettings(**given, in_file_order=True), rows, lines
        shards = find_shards(root, most_cells=own.most_cells)
        given |= {key: key for key in ("time", "label") if key in shards.kinds}
        table = TableSettings(**given, in_file_order="time" not in given)
        refuse_types(shards, table)
        shards.refuse_unknown("text", "text")
        rows, _ = read_keys(shards, table, BadRows(0))
        batches = shards.batches({"text": TEXT}, ROWS)
        return table, rows, [line or "" for batch in batches for line in batch.columns["text"].to_pylist()]

    def _cut(self, line: str) -> Sequence[Sequence[str]]:
        """The samples of a line: texts, or lists of words."""
        tokens, length = line if self.settings.words is None else line.split(), self.settings.length
        return [tokens[first : first + length] for first in range(0, len(tokens) - 1, length - 1)]

    def _ids(self, samples: Sequence[Sequence[str]], trains: np.ndarray) -> tuple[np.ndarray, int, str]:
        """(n, length) the ids of the tokens of samples, the size of their vocabulary, and what is to be told.

        Words are counted where a sample `trains` (n,).
        """
        words, length = self.settings.words, self.settings.length
        counts = Counter(
            token
            for sample, counted in zip(samples, trains, strict=True)
            if counted or words is None
            for token in sample
        )
        known = sorted(counts, key=lambda token: (-counts[token], token))[:words]
        number = {
            token: place for place, token in enumerate(known, PADDING + 1 if words is None else UNKNOWN + 1)
        }
        ids = np.zeros((len(samples), length), np.uint8 if len(number) <= 254 else np.float32)
        for row, sample in zip(ids, samples, strict=True):
            row[: len(sample)] = [number.get(token, UNKNOWN) for token in sample]
        total, padded = sum(map(len, samples)), int((ids[:, -1] == PADDING).sum())
        note = f"{total:,} tokens, of {len(known):,} {'characters' if words is None else 'words'}"
        if words is not None:
            note += f"; {int((ids == UNKNOWN).sum()):,} are none of them, and have id {UNKNOWN}"
        vocabulary = max(number.values(), default=0) + 1
        return ids, vocabulary, f"{note}; {padded:,} of {len(ids):,} samples are filled up with id {PADDING}"


def _taken(rows: Rows, numbers: Sequence[int], root: Path) -> Rows:
    """The row of each line as often as it has samples; DataFileError for a client without one."""
    line = np.repeat(np.arange(len(rows)), numbers)
    without = np.flatnonzero(np.bincount(rows.client[line], minlength=len(rows.clients)) == 0)
    if len(without):
        raise DataFileError(
            root,
            f"client {rows.clients[int(without[0])]!r} has no line of two tokens or more; leave it out "
            f"({len(without)} of {len(rows.clients)} clients have none)",
        )
    return rows.take(line)


def _of_folder(root: Path) -> Texts:
    texts: dict[str, Sequence[str]] = {}
    for path in sorted(root.glob("*.txt")):
        try:
            texts[path.stem] = read_text(path, MOST_TEXT).splitlines()
        except (OSError, ValueError) as error:
            raise DataFileError(path, f"cannot be read as text in UTF-8 ({error})") from error
    if not texts:
        raise DataFileError(root, "has no .txt file; it needs one for each client")
    return texts


def _of_leaf(path: Path) -> Texts:
    """Samples of LEAF (Caldas et al. 2018) are 80 characters, x, and the one that follows, y.

    They slide over a user's text by one character, and are joined to what they are of: no character is told
    twice, or in training and tests.
    """
    document = read_document(path, MOST_TEXT)
    users = document.get("user_data") if isinstance(document, dict) else None
    if not isinstance(users, dict) or not users:
        raise DataFileError(path, "user_data: must be an object that has the users of LEAF, and not empty")
    texts: dict[str, Sequence[str]] = {}
    for user, data in users.items():
        x, y = (field(path, data, key, list, f"user_data.{user}.", may_be_empty=True) for key in "xy")
        if len(x) != len(y) or not all(isinstance(text, str) for text in (*x, *y)):
            raise DataFileError(path, f"user_data.{user}: x and y must be lists of texts, and of one length")
        texts[user] = lines = list[str]()
        for before, after in zip(x, y, strict=True):
            if lines and before and lines[-1].endswith(before):
                lines[-1] += after
            else:
                lines.append(before + after)
    return texts
