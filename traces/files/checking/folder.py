"""Checks of a whole trace folder: its files, `trace.toml`, samples and targets, and then its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from emulator.errors import DataFileError
from emulator.storage.bounded import read_toml
from emulator.storage.parquet_columns import ParquetColumns
from traces.files import arrivals as rules
from traces.files.checking.columns import check_column
from traces.files.checking.expiry import check_expiry
from traces.files.checking.features import FeaturePass
from traces.files.checking.findings import Finding, Findings
from traces.files.checking.rows import check_together
from traces.files.expiry import EXPIRY
from traces.files.facts import (
    ARRIVALS,
    FACTS,
    FEATURES,
    MOST_FACTS_BYTES,
    FileFacts,
    TraceFacts,
    broken_rule,
    file_facts,
    read_facts,
)
from traces.files.features import TARGETS, open_features, open_targets
from traces.files.folder import (
    CHANNEL_KEYS,
    TraceFolder,
    affine,
    check_channels,
    check_shape,
    data_files,
    facts_of,
    open_with,
)


def check_folder(path: Path, more: Callable[[TraceFolder], list[Finding]] = lambda folder: []) -> Findings:
    """Find every violation in a trace folder, also in one that cannot be opened.

    `more` finds what else is wrong with a folder without violations.

    All data files are read and hashed. What cannot be examined for another violation, such as samples beyond
    a damaged `features.npy`, is examined once that one is mended.
    """
    findings = Findings()
    facts = _check_facts(path, findings)
    if facts is None and not (path / FACTS).exists():
        return findings
    tokens = None if facts is None else facts.tokens
    features = FeaturePass(path / FEATURES, None if tokens is None else tokens.vocabulary)
    hashing: dict[str, Callable[[], FileFacts]] = {
        ARRIVALS: partial(file_facts, path / ARRIVALS),
        FEATURES: features.facts,
        TARGETS: partial(file_facts, path / TARGETS),
    }
    hashed: dict[str, FileFacts] = {}
    for name in data_files(path, facts):
        _check_file(path, name, facts, hashing[name], hashed, findings)
    num_samples = _check_features(path, facts, features, findings) if (path / FEATURES).is_file() else None
    if num_samples is not None and (path / TARGETS).is_file():
        findings.passes(partial(open_targets, path / TARGETS, num_samples))
    if (path / ARRIVALS).is_file():
        _check_arrivals(path, facts, num_samples, findings)
    if not findings.violations:
        try:  # that nothing is said to be right which the reader refuses
            folder = open_with(path, read_facts(path).model_copy(update={"files": hashed}))
            findings.violations += more(folder)
        except DataFileError as error:
            findings.add(error)
    return findings


def _check_facts(folder: Path, findings: Findings) -> TraceFacts | None:
    """The facts, without those that break a rule; None if there are none to go by."""
    try:
        return read_facts(folder)
    except DataFileError as error:
        if not isinstance(error.__cause__, ValidationError):
            findings.add(error)
            return None
    table = read_toml(folder / FACTS, MOST_FACTS_BYTES)
    known = {info.alias or name for name, info in TraceFacts.model_fields.items()}
    alone: dict[str, Any] = {key: {"version": 1, key: value} for key, value in table.items()}
    if "version" not in table:
        alone["version"] = {}
    good: dict[str, Any] = {"version": 1}
    for key, document in alone.items():  # each by itself: a broken rule of one hides those of others
        try:
            TraceFacts.model_validate(document)
        except ValidationError as error:
            for problem in dict.fromkeys(map(broken_rule, error.errors())):
                findings.violations.append(Finding(folder / FACTS, problem))
        else:
            good |= {key: table[key]} if key in known else {}
    return TraceFacts.model_validate(good)


def _check_file(
    folder: Path,
    name: str,
    facts: TraceFacts | None,
    compute: Callable[[], FileFacts],
    hashed: dict[str, FileFacts],
    findings: Findings,
) -> None:
    """Compare the size and digest of a data file with those that are recorded; `hashed` gets what it has."""
    path, recorded = folder / name, None if facts is None else facts.files.get(name)
    try:
        if recorded is not None or not path.is_file():
            facts_of(folder, name, recorded)
        hashed[name] = compute()
    except DataFileError as error:
        findings.add(error)
        return
    if recorded is None:
        text = f"{FACTS} has no digest of it: it is hashed at every start"
        findings.remarks.append(Finding(path, text))
    elif hashed[name].sha256 != recorded.sha256:
        digests = f"has the sha256 {hashed[name].sha256}, but {FACTS} records {recorded.sha256}"
        findings.violations.append(Finding(path, f"{digests}: changed since it was built"))


def _check_features(
    folder: Path, facts: TraceFacts | None, features: FeaturePass, findings: Findings
) -> int | None:
    """The number of samples; None if the file cannot be read."""
    path = folder / FEATURES
    try:
        values = open_features(path)
    except DataFileError as error:
        findings.add(error)
        return None
    shape = values.shape[1:]
    if facts is not None:
        checks: list[Callable[[], object]] = [
            partial(check_shape, folder, facts, shape),
            *(partial(check_channels, folder, facts, key, shape) for key in CHANNEL_KEYS),
        ]
        passed = [findings.passes(check) for check in checks]
        if all(passed):
            findings.passes(partial(affine, folder, facts, values.dtype, shape))
    if values.dtype == np.float32 or (facts is not None and facts.tokens is not None):
        findings.violations += features.violations(values)
    return len(values)


def _check_arrivals(
    folder: Path, facts: TraceFacts | None, num_samples: int | None, findings: Findings
) -> None:
    path = folder / ARRIVALS
    try:
        table = ParquetColumns(path)
    except DataFileError as error:
        findings.add(error)
        return
    for name in table.names:
        if name not in rules.KNOWN:
            findings.violations.append(Finding(path, rules.unknown_column(name)))
    for name in rules.REQUIRED:
        findings.passes(partial(table.kind, name))
    when = rules.when_of(table) if findings.passes(partial(rules.when_of, table)) else None
    classes = None if facts is None else facts.classes
    columns = {
        name: column
        for name in rules.KNOWN
        if name != EXPIRY  # which `check_expiry` reads
        and name in table
        and (column := check_column(table, name, classes, num_samples, findings)) is not None
    }
    check_expiry(table, when, None if facts is None else facts.version, findings)
    if when is not None and all(name in columns for name in (*rules.REQUIRED, when)):
        check_together(path, columns, when, classes, num_samples, findings)
