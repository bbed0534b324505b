"""Distances between what clients report."""

from __future__ import annotations

from typing import Literal

DistanceName = Literal["l1", "js", "euclidean", "squared_euclidean", "cosine"]
