"""One pass over `features.npy`: it is hashed, and its values are examined, as it may exceed the memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from emulator.errors import DataFileError
from traces.files.checking.findings import MOST_LISTED, Finding
from traces.files.facts import FileFacts, file_facts
from traces.files.features import open_features

_PIECE_BYTES = 2**20
"""Bytes of features that are hashed and examined at once, while they are in a processor's cache."""


class FeaturePass:
    """The samples of `path`, read at most once.

    Attributes:
        path: the file.
        not_finite: the violations of samples with values that are not finite, once `facts` has read the file;
            None before, and if it is not an array.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.not_finite: list[Finding] | None = None

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
        self.not_finite = not_finite(self.path, values, state)
        return FileFacts(bytes=size, sha256=state.hexdigest())

    def violations(self, values: np.ndarray) -> list[Finding]:
        """The samples of `values`, which are those of the file, with values that are not finite."""
        return not_finite(self.path, values) if self.not_finite is None else self.not_finite


def not_finite(path: Path, values: np.ndarray, state: hashlib._Hash | None = None) -> list[Finding]:
    """The samples with values that are not finite; `state` is updated with the bytes of all `values`."""
    samples = values.reshape(len(values), -1)
    at_once = max(1, _PIECE_BYTES // samples[:1].nbytes)
    listed: list[Finding] = []
    number = 0
    for first in range(0, len(samples), at_once):
        some = samples[first : first + at_once]
        if state is not None:
            state.update(some.data)
        is_good = np.isfinite(some)
        if is_good.all():  # as a rule
            continue
        bad = np.flatnonzero(~is_good.all(axis=1))
        number += len(bad)
        for row in bad[: MOST_LISTED - len(listed)].tolist():
            these = some[row][~is_good[row]]
            text = f"sample {first + row}: has {len(these)} value(s) that are not finite, such as {these[0]}"
            listed.append(Finding(path, text))
    others = number - len(listed)
    return [*listed, Finding(path, f"and {others} more samples are not finite")] if others else listed
