"""One pass over an `.npy` file: it is hashed, and its values are examined, as it may exceed the memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from emulator.errors import DataFileError
from traces.files.checking.findings import MOST_LISTED, Finding
from traces.files.facts import FileFacts, file_facts
from traces.files.features import FINITE, ValueRule, ids_below, open_features

_PIECE_BYTES = 2**20
"""Bytes of features that are hashed and examined at once, while they are in a processor's cache."""


class FeaturePass:
    """The samples of `path`, read at most once.

    Attributes:
        path: the file.
        rule: what its values are to be.
        bad: the violations of samples with values that break the rule, once `facts` has read the file; None
            before, and if it is not an array.
    """

    def __init__(self, path: Path, vocabulary: int | None = None) -> None:
        self.path = path
        self.rule = FINITE if vocabulary is None else ids_below(vocabulary)
        self.bad: list[Finding] | None = None

    def facts(self) -> FileFacts:
        """The size and the digest of the file; its values are examined meanwhile.

        Raises:
            DataFileError: it cannot be read.
        """
        try:
            values = open_features(self.path)
        except DataFileError:
            return file_facts(self.path)
        state, size = hashlib.sha256(), self.path.stat().st_size
        with self.path.open("rb") as file:
            state.update(file.read(size - values.nbytes))
        self.bad = bad_samples(self.path, values, self.rule, state)
        return FileFacts(bytes=size, sha256=state.hexdigest())

    def violations(self, values: np.ndarray) -> list[Finding]:
        """The samples of `values`, which are those of the file, with values that break the rule."""
        return bad_samples(self.path, values, self.rule) if self.bad is None else self.bad


def bad_samples(
    path: Path, values: np.ndarray, rule: ValueRule, state: hashlib._Hash | None = None
) -> list[Finding]:
    """The samples with values that break a rule; `state` is updated with the bytes of all `values`."""
    samples = values.reshape(len(values), -1)
    at_once = max(1, _PIECE_BYTES // samples[:1].nbytes)
    listed: list[Finding] = []
    number = 0
    for first in range(0, len(samples), at_once):
        some = samples[first : first + at_once]
        if state is not None:
            state.update(some.data)
        is_good = rule.is_good(some)
        if is_good.all():  # as a rule
            continue
        bad = np.flatnonzero(~is_good.all(axis=1))
        number += len(bad)
        listed += [
            Finding(path, rule.problem(first + row, some[row][~is_good[row]]))
            for row in bad[: MOST_LISTED - len(listed)].tolist()
        ]
    others = number - len(listed)
    return [*listed, Finding(path, f"and {others} more samples are {rule.are}")] if others else listed
