"""FlexCFL groups clients and newcomers, and detects drift, as the functions do that its public code calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers import directions
from coordinator.clusterers.directions import grouped_by_direction
from coordinator.clusterers.flexcfl import FlexCfl, FlexCflSettings
from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.label_shift import LabelShiftSettings, labels_of, shifted
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, SampleRanges
from tests.fakes import a_view
from tests.golden.parity.recorded import recorded

RECORDED = recorded("flexcfl")
CASES = pytest.mark.parametrize(
    "case", RECORDED["cases"], ids=[f"seed-{case['seed']}" for case in RECORDED["cases"]]
)


@CASES
def test_k_means_gets_the_same_cosines_with_principal_directions_but_for_signs(
    case: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    updates, received = np.array(case["updates"]), list[Floats]()

    def hearing(points: Floats, counts: Sequence[int], *more: Any) -> list[Ints]:
        received.append(np.abs(points))
        return kmeans(points, counts, *more)

    monkeypatch.setattr(directions, "kmeans", hearing)
    grouped_by_direction(updates @ updates.T, case["groups"], np.random.default_rng(0))
    np.testing.assert_allclose(received, [case["absolute_cosines"]], rtol=0, atol=1e-8)


def view_of(deltas: Floats32, absent: Sequence[int], assignment: Assignment | None) -> View:
    """Clients but those `absent` hold data, and train a row of `deltas` (N, P)."""

    def train(clients: Ints, start: Floats32, steps: int) -> ArrayUpdates:
        ones = np.ones(len(clients), dtype=np.int64)
        return ArrayUpdates(clients, ones, ones, ones, deltas[clients])

    models = 0 if assignment is None else assignment.num_models
    view = a_view(
        num_clients=len(deltas),
        absent=absent,
        assignment=assignment,
        models=np.zeros((models, deltas.shape[1])),
        model_ids=range(models),
        train=train,
    )
    return replace(view, initial=lambda number: np.zeros(deltas.shape[1], dtype=np.float32))


@CASES
def test_clients_are_grouped_alike_and_newcomers_join_the_same_groups(case: Mapping[str, Any]) -> None:
    labels, nearest = case["labels"], case["nearest"]
    deltas = np.array(case["updates"] + case["newcomers"], dtype=np.float32)
    flexcfl = FlexCfl(FlexCflSettings(num_groups=case["groups"]))
    made = flexcfl.on_data(view_of(deltas, range(len(labels), len(deltas)), None))
    assert made is not None
    joined = flexcfl.on_data(view_of(deltas, (), made)) or made
    # Each group has the same clients under a number of its own.
    pairs = set(zip(joined.members[:, 0].tolist(), labels + nearest, strict=True))
    assert len(pairs) == len({ours for ours, _ in pairs}) == len({theirs for _, theirs in pairs})
    assert len(pairs) == case["groups"]


def test_labels_shift_where_they_do_there() -> None:
    before, now = (np.array([shift[name] for shift in RECORDED["shifts"]]) for name in ("before", "now"))
    ends, everyone = 100 * np.arange(1, len(now) + 1), np.arange(len(now))  # 100 samples each
    held, settings = SampleRanges.one_each(ends - 100, ends), LabelShiftSettings(drift="sorted_counts")
    known = labels_of(everyone, a_view(before / 100, held=held), settings)
    found = shifted(known, a_view(now / 100, held=held, changed=everyone.tolist()), settings)
    assert found.tolist() == [row for row, shift in enumerate(RECORDED["shifts"]) if shift["shifted"]]
    apart = np.abs(known - np.sort(now, axis=1)).mean(axis=1)
    np.testing.assert_allclose(apart, [shift["distance"] for shift in RECORDED["shifts"]], rtol=0, atol=1e-8)
