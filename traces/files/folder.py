"""A trace folder, opened: its files read or mapped, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.errors import DataFileError
from emulator.numbers import LARGEST
from emulator.ports import Tokens
from traces.files.arrivals import ArrivalRows, read_arrivals
from traces.files.expiry import refuse_version
from traces.files.facts import ARRIVALS, FACTS, FEATURES, FileFacts, TraceFacts, read_facts, remembered_facts
from traces.files.features import TARGETS, FeatureFile, channels, open_features, open_targets, per_channel

SCALES = {np.dtype(np.uint8): 1 / 255, np.dtype("<f4"): 1.0}
"""The scale of values of each type, if `trace.toml` does not say."""


CHANNEL_KEYS = ("mean", "deviation")


@dataclass(frozen=True)
class TraceFolder:
    """The content of a trace folder; `digests` are the sha256 of its data files, by name."""

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
    return open_with(path, read_facts(path))


def open_with(path: Path, facts: TraceFacts) -> TraceFolder:
    """Open a trace folder whose `trace.toml` states `facts`; see `open_folder`.

    They may have sizes and digests that `trace.toml` lacks: the files are not hashed again then.
    """
    digests = {name: known.sha256 for name, known in data_facts(path, facts).items()}
    values = open_features(path / FEATURES)
    shape = values.shape[1:]
    check_shape(path, facts, shape)
    factor, offset = affine(path, facts, values.dtype, shape)
    targets = open_targets(path / TARGETS, len(values)) if TARGETS in digests else None
    tokens = None if facts.tokens is None else Tokens(**facts.tokens.model_dump())
    rows = read_arrivals(path / ARRIVALS, len(values), facts.classes)
    if rows.expiry is not None:
        refuse_version(path / ARRIVALS, facts.version)
    more = (path / FEATURES, tokens, targets, facts.objective)
    features = FeatureFile(values, factor, offset, len(rows.classes), rows.classes, *more)
    return TraceFolder(path, facts, features, rows, digests)


def data_facts(path: Path, facts: TraceFacts) -> dict[str, FileFacts]:
    """The size and the digest of the data files of a trace folder, by name.

    Digests that `trace.toml` has are taken from there; other files are hashed, once in this process.

    Raises:
        DataFileError: a file is missing, or does not have the size that `trace.toml` records.
    """
    return {name: facts_of(path, name, facts.files.get(name)) for name in data_files(path, facts)}


def data_files(path: Path, facts: TraceFacts | None) -> tuple[str, ...]:
    """The names of the data files of a trace folder: targets are one if they are there, or listed."""
    has_targets = (path / TARGETS).exists() or (facts is not None and TARGETS in facts.files)
    return (ARRIVALS, FEATURES, TARGETS) if has_targets else (ARRIVALS, FEATURES)


def facts_of(folder: Path, name: str, recorded: FileFacts | None) -> FileFacts:
    """The size and the digest of the data file `name`; see `data_facts`."""
    path = folder / name
    if not path.is_file():
        needed = f"{FACTS}, {ARRIVALS} and {FEATURES}, and all files that {FACTS} lists"
        raise DataFileError(folder, f"has no {name}; a trace folder has {needed}")
    if recorded is None:
        return remembered_facts(path)
    size = path.stat().st_size
    if size != recorded.num_bytes:
        raise DataFileError(
            path, f"has {size} bytes, but {FACTS} records {recorded.num_bytes}: changed since it was built"
        )
    return recorded


def check_shape(path: Path, facts: TraceFacts, shape: tuple[int, ...]) -> None:
    """Raise DataFileError if `trace.toml` states another shape of samples than `shape`."""
    if facts.shape is not None and facts.shape != shape:
        raise DataFileError(path / FACTS, f"shape: states {facts.shape}, but {FEATURES} has {shape}")


def check_channels(path: Path, facts: TraceFacts, key: str, shape: tuple[int, ...]) -> None:
    """Raise DataFileError if the fact `key`, one of CHANNEL_KEYS, has not one number for each channel."""
    given, number = getattr(facts, key), channels(shape)
    if given is not None and len(given) != number:
        raise DataFileError(
            path / FACTS,
            f"{key}: has {len(given)} numbers, but samples of shape {shape} have {number} channel(s)",
        )


def affine(
    path: Path, facts: TraceFacts, dtype: np.dtype, shape: tuple[int, ...]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The factor and the offset of `FeatureFile`.

    Raises DataFileError if there is not one number per channel, or a quotient exceeds single precision; or
    if samples are tokens, and have such numbers or are no sequences.
    """
    for key in CHANNEL_KEYS:
        check_channels(path, facts, key, shape)
    if facts.tokens is not None:
        _check_tokens(path, facts, shape)
        return None, None
    number = channels(shape)
    scale = SCALES[dtype] if facts.scale is None else facts.scale
    mean = np.zeros(number) if facts.mean is None else np.array(facts.mean)
    deviation = np.ones(number) if facts.deviation is None else np.array(facts.deviation)
    factor = offset = None
    if scale != 1.0 or facts.deviation is not None:
        factor = per_channel(_quotients(path, "scale", np.full(number, scale), deviation), shape)
    if facts.mean is not None:
        offset = per_channel(-_quotients(path, "mean", mean, deviation), shape)
    return factor, offset


def _check_tokens(path: Path, facts: TraceFacts, shape: tuple[int, ...]) -> None:
    for key in ("scale", *CHANNEL_KEYS):
        if getattr(facts, key) is not None:
            problem = f"{key}: is for numbers, and samples of tokens are ids; leave {key} out, or tokens"
            raise DataFileError(path / FACTS, problem)
    if len(shape) != 1:
        problem = f"tokens: samples of shape {shape} are no texts; {FEATURES} must be (samples, tokens)"
        raise DataFileError(path / FACTS, problem)


def _quotients(path: Path, what: str, values: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    large = np.flatnonzero(np.abs(values) > LARGEST * deviation)  # a quotient may overflow
    if len(large):
        quotient = float(values[large[0]]) / float(deviation[large[0]])
        problem = f"{what} / deviation = {quotient:g} of channel {large[0]}: must be at most {LARGEST:g}"
        raise DataFileError(path / FACTS, problem)
    quotients: np.ndarray = values / deviation
    return quotients
