"""Trace folders: a trace as a few files that anybody can write.

`arrivals.parquet` says which sample reaches which client, and when; `features.npy` holds the samples, and is
mapped; `targets.npy`, if there is one, has numbers beside their labels; `trace.toml` says what they are.
docs/traces.md has the format.
"""

from traces.files.arrivals import ArrivalRows, read_arrivals, write_arrivals
from traces.files.facts import (
    ARRIVALS,
    FACTS,
    FEATURES,
    FileFacts,
    TraceFacts,
    file_facts,
    read_facts,
    write_facts,
)
from traces.files.features import TARGETS, FeatureFile, open_features
from traces.files.folder import TraceFolder, data_facts, open_folder

__all__ = [
    "ARRIVALS",
    "FACTS",
    "FEATURES",
    "TARGETS",
    "ArrivalRows",
    "FeatureFile",
    "FileFacts",
    "TokenFacts",
    "TraceFacts",
    "TraceFolder",
    "data_facts",
    "file_facts",
    "open_features",
    "open_folder",
    "read_arrivals",
    "read_facts",
    "write_arrivals",
    "write_facts",
]
