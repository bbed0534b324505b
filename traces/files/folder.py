"""A trace folder, opened: its three files read or mapped, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.errors import DataFileError
from traces.files.arrivals import ArrivalRows, read_arrivals
from traces.files.facts import ARRIVALS, FACTS, FEATURES, FileFacts, TraceFacts, file_facts, read_facts
from traces.files.features import FeatureFile, channels, open_features, per_channel

SCALES = {np.dtype(np.uint8): 1 / 255, np.dtype("<f4"): 1.0}
"""The scale of values of each type, if `trace.toml` does not say."""


@dataclass(frozen=True)
class TraceFolder:
    """The content of a trace folder; `digests` are the sha256 of its two data files, by name."""

    path: Path
    facts: TraceFacts
    features: FeatureFile
    rows: ArrivalRows
    digests: dict[str, str]


def open_folder(path: Path) -> TraceFolder:
    """Open a trace folder: map its samples, read its arrivals, and check that the three files fit.

    Files whose digests `trace.toml` has are not hashed: their sizes are compared. Others are hashed.

    Raises:
        DataFileError: a file is missing, damaged, or does not fit the others.
    """
    facts = read_facts(path)
    digests = {name: _digest(path, name, facts.files.get(name)) for name in (ARRIVALS, FEATURES)}
    values = open_features(path / FEATURES)
    shape = values.shape[1:]
    if facts.shape is not None and facts.shape != shape:
        raise DataFileError(path / FACTS, f"shape: states {facts.shape}, but {FEATURES} has {shape}")
    factor, offset = _affine(path, facts, values.dtype, shape)
    rows = read_arrivals(path / ARRIVALS, len(values), facts.classes)
    features = FeatureFile(values, factor, offset, len(rows.classes), rows.classes)
    return TraceFolder(path, facts, features, rows, digests)


def _affine(
    path: Path, facts: TraceFacts, dtype: np.dtype, shape: tuple[int, ...]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The factor and the offset of `FeatureFile`; DataFileError if there is not one number per channel."""
    number = channels(shape)
    for key in ("mean", "deviation"):
        given = getattr(facts, key)
        if given is not None and len(given) != number:
            raise DataFileError(
                path / FACTS,
                f"{key}: has {len(given)} numbers, but samples of shape {shape} have {number} channel(s)",
            )
    scale = SCALES[dtype] if facts.scale is None else facts.scale
    mean = np.zeros(number) if facts.mean is None else np.array(facts.mean)
    deviation = np.ones(number) if facts.deviation is None else np.array(facts.deviation)
    factor = per_channel(scale / deviation, shape) if scale != 1.0 or facts.deviation is not None else None
    offset = per_channel(-mean / deviation, shape) if facts.mean is not None else None
    return factor, offset


def _digest(folder: Path, name: str, recorded: FileFacts | None) -> str:
    path = folder / name
    if not path.is_file():
        raise DataFileError(folder, f"has no {name}; a trace folder has {FACTS}, {ARRIVALS} and {FEATURES}")
    if recorded is None:
        return file_facts(path).sha256
    size = path.stat().st_size
    if size != recorded.num_bytes:
        raise DataFileError(
            path, f"has {size} bytes, but {FACTS} records {recorded.num_bytes}: changed since it was built"
        )
    return recorded.sha256
