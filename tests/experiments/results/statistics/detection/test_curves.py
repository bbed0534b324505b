"""Operating points by hand, and the points of curves from the log of a played run by plain loops."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftscale
from experiments.config import Experiment, parse_experiment
from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.recorded import at_threshold
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.detection.curves import Curve, curves_of
from experiments.results.statistics.detection.scores import Detection, DetectorFigures
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate
from experiments.results.tables.summary import summarise_directory
from tests.experiments.running.played import play
from tests.experiments.small import SMALL


def figures(
    rates: Sequence[float], found: Sequence[int], delays: Sequence[float | None], drifts: int = 10
) -> dict[str, Estimate]:
    """Those of a detector at a threshold, by seed."""
    return {
        "false_alarms_per_1000": amount_estimate(rates),
        "recall_all": share_estimate([count / drifts for count in found]),
        "found": amount_estimate(found),
        "drifts": amount_estimate([drifts] * len(found)),
        "delay_rounds_mean": amount_estimate(delays),
    }


SENSITIVE = figures([3.0, 5.0], [8, 8], [2.0, 2.0])  # four false alarms
STRICT = figures([0.0, 0.0], [4, 2], [6.0, 10.0])  # none


def detection(points: Mapping[str, dict[str, Estimate]], arm: str = "a") -> Detection:
    """Of detectors by name."""
    found = {name: DetectorFigures("training", of, {}) for name, of in points.items()}
    return Detection(DetectionSettings("changed", 0, None, 3), {arm: found}, [])


def a_curve(**points: dict[str, Estimate]) -> Curve:
    """Of thresholds t1, t2, ..."""
    (curve,) = curves_of(detection({at_threshold("d", float(name[1:])): of for name, of in points.items()}))
    return curve


def test_between_two_thresholds_found_is_linear_and_delays_weigh_the_drifts_found_by_either() -> None:
    """At 1 false alarm a quarter of the clients draws the sensitive threshold.

    In the first seed it finds 3/4 x 4 + 1/4 x 8 = 5 of ten drifts, and 3 x 6 + 2 x 2 rounds are 22/5 each; in
    the second 3/4 x 2 + 1/4 x 8 = 3.5, and 1.5 x 10 + 2 x 2 rounds are 19/3.5 each.
    """
    point = a_curve(t3=STRICT, t2=SENSITIVE).at(1.0)
    assert point is not None
    assert point.thresholds == (3.0, 2.0)
    assert point.figures["false_alarms_per_1000"].per_seed == pytest.approx([0.75, 1.25])  # 1 in the mean
    assert point.figures["recall_all"].per_seed == pytest.approx([0.5, 0.35])
    assert point.figures["delay_rounds_mean"].per_seed == pytest.approx([22 / 5, 19 / 3.5])


def test_a_rate_that_was_played_is_that_threshold() -> None:
    middle = figures([1.0, 1.0], [6, 4], [3.0, 5.0])
    curve = a_curve(t3=STRICT, t1=middle, t2=SENSITIVE)
    for rate, threshold in ((0.0, STRICT), (1.0, middle), (4.0, SENSITIVE)):
        point = curve.at(rate)
        assert point is not None
        for name in ("false_alarms_per_1000", "recall_all", "delay_rounds_mean"):
            assert point.figures[name].per_seed == pytest.approx(threshold[name].per_seed)


def test_outside_of_what_was_played_there_is_no_point() -> None:
    curve = a_curve(t1=figures([1.0], [5], [1.0]), t2=figures([0.5], [4], [1.0]))
    assert [curve.at(rate) is None for rate in (0.4, 0.5, 1.0, 1.1)] == [True, False, False, True]
    at = curve.as_json()
    assert (at["arm"], at["detector"], at["2"]) == ("a", "d", None)
    assert json.loads(json.dumps(at))["1"]["thresholds"] == [2.0, 1.0]


def test_of_thresholds_with_the_same_false_alarms_the_one_that_finds_most_is_the_neighbour() -> None:
    """Whatever their order: without false alarms 5 of ten are found at threshold 4, and 3 at threshold 6."""
    low, high = figures([0.0], [3], [1.0]), figures([0.0], [5], [1.0])
    for points in ({"t6": low, "t4": high}, {"t4": high, "t6": low}):
        point = a_curve(**points, t2=figures([2.0], [9], [1.0])).at(1.0)
        assert point is not None
        assert (point.thresholds, point.figures["recall_all"].mean) == ((4.0, 2.0), 0.7)


def test_a_threshold_that_finds_nothing_has_no_part_in_delays() -> None:
    point = a_curve(t9=figures([0.0], [0], [None]), t2=figures([2.0], [8], [3.0])).at(1.0)
    assert point is not None
    assert (point.figures["recall_all"].mean, point.figures["delay_rounds_mean"].mean) == (0.4, 3.0)
    neither = a_curve(t9=figures([0.0], [0], [None]), t8=figures([2.0], [0], [None])).at(1.0)
    assert neither is not None
    assert neither.figures["delay_rounds_mean"].mean is None


def test_intervals_are_over_seeds_and_left_out_where_those_of_the_thresholds_are() -> None:
    strict, sensitive = figures([0.0] * 3, [4, 5, 3], [6.0] * 3), figures([2.0] * 3, [8, 9, 7], [2.0] * 3)
    point = a_curve(t3=strict, t2=sensitive).at(1.0)
    assert point is not None
    assert point.figures["recall_all"].ci95 == pytest.approx(share_estimate([0.6, 0.7, 0.5]).ci95)
    by_seed = [{name: one.by_seed() for name, one in of.items()} for of in (strict, sensitive)]
    triggered = a_curve(t3=by_seed[0], t2=by_seed[1]).at(1.0)
    assert triggered is not None
    assert {one.ci95 for one in triggered.figures.values()} == {None}


def test_intervals_count_that_the_rate_is_one_of_few_false_alarms() -> None:
    """Of 100 drifts 60 and 80 % are found, at 0.3 and 2 false alarms per 1,000 of 3,500 decisions a seed.

    At 1 it is 60 + 20 x 0.7 / 1.7 = 68.2 %, in 95 % of the intervals over five seeds; were false alarms taken
    as they are, in 79 % of them.
    """
    drawing = np.random.default_rng(3)
    covered, naive, number = 0, 0, 0
    for _ in range(1500):
        alarms = drawing.poisson(3.5 * 0.3, 5)
        more = alarms + drawing.poisson(3.5 * 1.7, 5)
        few = drawing.binomial(100, 0.6, 5)
        many = few + drawing.binomial(100 - few, 0.5)
        strict, sensitive = (
            figures((of / 3.5).tolist(), found.tolist(), [1.0] * 5, drifts=100)
            for of, found in ((alarms, few), (more, many))
        )
        point = a_curve(t3=strict, t2=sensitive).at(1.0)
        if point is None:
            continue
        found = point.figures["recall_all"]
        plain = share_estimate(found.per_seed)
        truth = 0.6 + 0.2 * 0.7 / 1.7
        assert found.ci95 is not None
        assert plain.ci95 is not None
        assert found.mean == pytest.approx(plain.mean)
        number += 1
        covered += found.ci95[0] <= truth <= found.ci95[1]
        naive += plain.ci95[0] <= truth <= plain.ci95[1]
    assert number > 1400
    assert 0.93 < covered / number < 0.97
    assert naive / number < 0.85


def test_detectors_at_one_threshold_or_without_decisions_or_drifts_have_no_curve() -> None:
    undecided = {**STRICT, "false_alarms_per_1000": amount_estimate([None, 0.0])}
    nothing = {**STRICT, "recall_all": share_estimate([None, None])}
    for other in ({}, {"d@2": undecided}, {"d@2": nothing}, {"d": STRICT}, {"d@home": STRICT}):
        assert curves_of(detection({"d@3": STRICT, **other})) == []
    assert curves_of(None) == []


def test_curves_are_of_an_arm() -> None:
    """Two arms with the same detectors have each its own."""
    both = {"d@3": STRICT, "d@2": SENSITIVE}
    arms = {arm: detection(both, arm).arms[arm] for arm in ("a", "b")}
    curves = curves_of(Detection(DetectionSettings("changed", 0, None, 3), arms, []))
    assert [(curve.arm, curve.name, len(curve.points)) for curve in curves] == [("a", "d", 2), ("b", "d", 2)]
    assert [curve.points[0].thresholds for curve in curves] == [(3.0,)] * 2


THRESHOLDS = (0.15, 0.3, 0.6, 1.2)

WATCHED: dict[str, Any] = {
    **SMALL,
    "seeds": [0, 1],
    "trace": {
        "source": "digits",
        "clients": 12,
        "static": True,
        "drift": {"kind": "none"},
        "noise": 0.2,
        "samples_per_step": 20,
        "test_samples_per_step": 4,
        "rounds_per_step": 2,
        "changes": [
            {"what": {"swap": [[3, 8]]}, "on": "held", "clients": {"part": 1, "of": 2}, "at_round": 30}
        ],
    },
    "round": {"rounds": 60, "participants": 6},
    "detection": {"first_round": 4, "tolerance": 20},
}
"""Half of the clients swap labels half-way."""


def watched(**settings: Any) -> Experiment:
    """Those runs, with a detector of these settings."""
    rises = {"kind": "page_hinkley", "signal": "losses", "two_sided": False, "warm_start": 3, **settings}
    return parse_experiment(
        {**WATCHED, "arm": [{"name": "watched", "detectors": {"rises": rises}}]}, "watched"
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """These runs, watched at four thresholds at once."""
    path = tmp_path_factory.mktemp("played") / "out"
    play(watched(thresholds=list(THRESHOLDS)), path)
    return path


def log_of(path: Path, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the rounds of a log, as they are written."""
    lines = (path / "watched" / f"seed-{seed}" / "log.jsonl").read_text().splitlines()
    header, *rounds = map(json.loads, lines)
    return header, rounds


def by_loops(path: Path, seed: int, name: str) -> tuple[int, int, list[int]]:
    """(decisions, false alarms, rounds of delay) of a detector, from the log alone.

    A client has at most one drift in these runs.
    """
    header, rounds = log_of(path, seed)
    drifts = header["drifts"]
    onset = {}
    for client, step in zip(drifts["client"], drifts["step"], strict=True):
        assert client not in onset
        onset[client] = next(number for number, line in enumerate(rounds) if line["step"] >= step)
    decisions, alarms, delays = 0, 0, []
    found: set[int] = set()
    missed: set[int] = set()
    for number, line in enumerate(rounds):
        decided = line["decided"]["training"]
        decisions += len(decided) if number >= 4 else 0
        for client in line["flagged"].get(name, []):
            assert client in decided
            has_drifted = client in onset and number >= onset[client]
            if has_drifted and client not in found | missed and number - onset[client] <= 20:
                found.add(client)
                delays.append(number - onset[client])
            elif not (has_drifted and client in found):
                alarms += number >= 4
                if has_drifted:
                    missed.add(client)
    return decisions, alarms, delays


def curve_points(path: Path) -> dict[float, Mapping[str, Estimate]]:
    """The figures at each of the thresholds."""
    summary = summarise_directory(RunDirectory(path), RunDirectory(path).reported_runs())
    (curve,) = curves_of(summary.detection)
    assert (curve.arm, curve.name) == ("watched", "rises")
    return {point.thresholds[0]: point.figures for point in curve.points}


@pytest.mark.slow
def test_the_points_of_a_curve_are_those_of_plain_loops_over_the_logs(played: Path) -> None:
    points = curve_points(played)
    assert sorted(points) == list(THRESHOLDS)
    assert len({found["false_alarms_per_1000"].mean for found in points.values()}) > 2  # they differ
    for threshold, found in points.items():
        for seed in (0, 1):
            decisions, alarms, delays = by_loops(played, seed, at_threshold("rises", threshold))
            drifts = len(log_of(played, seed)[0]["drifts"]["client"])
            assert found["decisions"].per_seed[seed] == decisions > 100
            assert found["false_alarms_per_1000"].per_seed[seed] == pytest.approx(1000 * alarms / decisions)
            assert found["recall_all"].per_seed[seed] == pytest.approx(len(delays) / drifts)
            mean = sum(delays) / len(delays) if delays else None
            assert found["delay_rounds_mean"].per_seed[seed] == pytest.approx(mean)


@pytest.mark.slow
def test_the_truth_joins_with_the_points_in_the_frames_of_detection(played: Path) -> None:
    """The drifts of the header are the rows of `drifts` at each threshold, and these make its points."""
    results = driftscale.load(played)
    points, drifts, detected = curve_points(played), results.drifts, results.detection
    assert set(detected.detector) == {at_threshold("rises", threshold) for threshold in THRESHOLDS}
    for row in detected.itertuples():
        header, _ = log_of(played, row.seed)
        of_one = drifts[(drifts.seed == row.seed) & (drifts.detector == row.detector)]
        truth = sorted(zip(header["drifts"]["client"], header["drifts"]["step"], strict=True))
        assert sorted(zip(of_one.client, of_one.step, strict=True)) == truth
        found = points[float(row.detector.removeprefix("rises@"))]
        assert of_one.found_round.notna().mean() == pytest.approx(found["recall_all"].per_seed[row.seed])
        delays = of_one.delay_rounds.dropna()
        mean = delays.mean() if len(delays) > 0 else None
        assert mean == pytest.approx(found["delay_rounds_mean"].per_seed[row.seed])
        assert row.false_alarms_per_1000 == found["false_alarms_per_1000"].per_seed[row.seed]


@pytest.mark.slow
def test_thresholds_in_one_run_are_those_of_runs_of_their_own(played: Path, tmp_path: Path) -> None:
    """What one run flags at a threshold, a run with that threshold alone flags; and nothing else differs."""
    play(watched(threshold=0.3), tmp_path / "out")
    (_, together), (_, by_itself) = log_of(played, 0), log_of(tmp_path / "out", 0)
    for line, of_one in zip(together, by_itself, strict=True):
        assert line["flagged"].get("rises@0.3") == of_one["flagged"].get("rises")
        assert line["clipped"]["rises@0.3"] == of_one["clipped"]["rises"]
        assert {**line, "flagged": None, "clipped": None} == {**of_one, "flagged": None, "clipped": None}
