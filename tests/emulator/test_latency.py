"""One client worked out by hand.

400 bytes down at 100 bytes/s and 100 up at 50 bytes/s, each after 1 s of latency; 6 samples trained and 3
scored at half a second per sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from emulator.arrays import Floats, Ints
from emulator.latency import NO_JITTER, TIME_MODELS, DriftscaleLatency, FedScaleLatency, Jitter, Phases
from emulator.messages import Work
from emulator.seeding import RandomStreams
from tests.fakes import INF, FakeAvailability, ints

FIRST: Ints = np.array([0])


@dataclass(frozen=True)
class FakeFleet:
    seconds_per_sample: Floats
    download_bytes_per_s: Floats
    upload_bytes_per_s: Floats
    latency_s: Floats


FLEET = FakeFleet(
    seconds_per_sample=np.array([0.5, 2.0]),
    download_bytes_per_s=np.array([100.0, 1000.0]),
    upload_bytes_per_s=np.array([50.0, 500.0]),
    latency_s=np.array([1.0, 0.25]),
)
WORK = Work.of(1, download_bytes=400, upload_bytes=100, trained_samples=6, forward_samples=3)


def seconds(phases: Phases) -> list[float]:
    return [float(phase.item()) for phase in (phases.download_s, phases.compute_s, phases.upload_s)]


def test_a_visit_is_download_then_compute_then_upload() -> None:
    phases = DriftscaleLatency(FLEET, model_factor=2.0).phases(FIRST, WORK)
    assert seconds(phases) == [1 + 4, (6 + 1) * 0.5 * 2, 1 + 2]
    assert phases.total_s.item() == 15.0


def test_a_forward_pass_costs_a_third_of_a_training_step() -> None:
    latency = DriftscaleLatency(FLEET)
    scored = latency.phases(FIRST, Work.of(1, forward_samples=9)).compute_s
    trained = latency.phases(FIRST, Work.of(1, trained_samples=3)).compute_s
    assert scored.item() == pytest.approx(trained.item()) == 1.5


def test_nothing_to_move_costs_no_latency() -> None:
    latency = DriftscaleLatency(FLEET)
    assert seconds(latency.phases(FIRST, Work.of(1, trained_samples=2))) == [0.0, 1.0, 0.0]
    assert seconds(latency.phases(FIRST, Work.of(1, upload_bytes=50))) == [0.0, 0.0, 2.0]


def test_phases_follow_the_given_clients_row_by_row() -> None:
    work = Work.of(3, download_bytes=1000, trained_samples=1)
    phases = DriftscaleLatency(FLEET).phases(np.array([1, 0, 1]), work)
    assert phases.total_s.tolist() == [0.25 + 1 + 2, 1 + 10 + 0.5, 0.25 + 1 + 2]


def test_doubling_seconds_per_sample_doubles_every_compute_time_exactly() -> None:
    slow = replace(FLEET, seconds_per_sample=2 * FLEET.seconds_per_sample)
    both = np.array([0, 1])
    work = Work.of(2, download_bytes=3, upload_bytes=7, trained_samples=13, forward_samples=5)
    once, twice = (DriftscaleLatency(fleet, 1.7).phases(both, work) for fleet in (FLEET, slow))
    assert twice.compute_s.tolist() == (2 * once.compute_s).tolist()
    assert twice.download_s.tolist() == once.download_s.tolist()


def test_fedscale_has_one_bandwidth_no_latency_no_model_and_no_forward_pass() -> None:
    phases = FedScaleLatency(FLEET, model_factor=2.0).phases(FIRST, WORK)
    assert seconds(phases) == [4.0, 6 * 0.5, 1.0]


def test_of_five_visits_the_time_models_drop_out_different_ones_at_different_times() -> None:
    """Visits from 100 s on; the third and the fourth client are offline at the end of theirs."""
    sessions = {
        1: [(0.0, 105.0), (108.0, 120.0)],
        2: [(0.0, 105.0), (108.0, 109.0)],
        3: [(0.0, 105.0)],
        4: [(0.0, 99.0), (101.0, 200.0)],  # went offline since it was selected
    }
    visits = {
        "clients": ints(0, 1, 2, 3, 4),
        "start_s": 100.0,
        "due_s": np.array([110.0, 110.0, 110.0, 107.0, 102.0]),
        "offline_s": np.array([INF, 105.0, 105.0, 105.0, 100.0]),
        "availability": FakeAvailability(sessions),
    }
    assert DriftscaleLatency(FLEET).drop_out_s(**visits).tolist() == [INF, 105, 105, 105, 100]
    assert FedScaleLatency(FLEET).drop_out_s(**visits).tolist() == [INF, INF, 100, 100, INF]


def test_both_time_models_go_by_name() -> None:
    assert dict(TIME_MODELS) == {"driftscale": DriftscaleLatency, "fedscale": FedScaleLatency}


@pytest.mark.parametrize(
    ("elapsed_s", "down", "up"),
    [
        (0.0, 0, 0),
        (2.5, 200, 0),  # half of the five seconds of download
        (5.0, 400, 0),
        (12.0, 400, 0),  # the upload begins
        (13.5, 400, 50),
        (15.0, 400, 100),
        (99.0, 400, 100),
    ],
)
def test_bytes_move_pro_rata_of_their_phase(elapsed_s: float, down: float, up: float) -> None:
    phases = DriftscaleLatency(FLEET, model_factor=2.0).phases(FIRST, WORK)
    moved = phases.moved(WORK, np.array([elapsed_s]))
    assert [float(side.item()) for side in moved] == [down, up]


def test_a_visit_without_transfer_moves_no_bytes() -> None:
    work = Work.of(1, trained_samples=2)
    phases = DriftscaleLatency(FLEET).phases(FIRST, work)
    assert [side.item() for side in phases.moved(work, np.array([0.5]))] == [0.0, 0.0]


# -- jitter -------------------------------------------------------------------------------------------------

MANY = 100_000
EVERYONE = np.arange(MANY)
SPREAD = Jitter(compute=0.03, network=0.3, model=0.2)


def refuse_unless_normal(factors: Floats, deviation: float) -> None:
    """The log has mean 0 and this standard deviation, to 1 % of it: 3 or 4 standard errors."""
    logs = np.log(factors)
    assert abs(logs.mean()) < 0.01 * deviation
    assert abs(logs.std() - deviation) < 0.01 * deviation
    assert 0.65 * MANY < (np.abs(logs) < deviation).sum() < 0.72 * MANY  # 68.3 % of a normal


def test_the_logs_of_factors_are_normal_with_mean_0_and_the_given_deviations() -> None:
    compute, network = SPREAD.visit_factors(RandomStreams(1), 3, EVERYONE)
    devices = SPREAD.device_factors(RandomStreams(1), MANY, "mlp")
    assert devices is not None
    for factors, deviation in ((compute, 0.03), (network, 0.3), (devices, 0.2)):
        refuse_unless_normal(factors, deviation)
    together = np.corrcoef([np.log(compute), np.log(network), np.log(devices)])
    assert np.abs(together - np.eye(3)).max() < 0.015


def test_the_factors_of_a_visit_follow_from_the_seed_the_dispatch_and_the_client_alone() -> None:
    streams = RandomStreams(5)
    of_all = SPREAD.visit_factors(streams, 7, np.arange(50))
    of_two = SPREAD.visit_factors(streams, 7, ints(30, 4))
    assert [factors.tolist() for factors in of_two] == [factors[[30, 4]].tolist() for factors in of_all]
    for moved in (
        SPREAD.visit_factors(streams, 8, ints(4)),
        SPREAD.visit_factors(RandomStreams(6), 7, ints(4)),
    ):
        assert not set(np.array(moved).ravel()) & set(np.array(of_two).ravel())


def test_a_device_has_a_factor_for_each_model_whatever_the_number_of_clients() -> None:
    streams = RandomStreams(5)
    first, second = (SPREAD.device_factors(streams, 9, name) for name in ("cnn", "mlp"))
    again = SPREAD.device_factors(streams, 4, "cnn")
    assert first is not None
    assert second is not None
    assert again is not None
    assert again.tolist() == first[:4].tolist()
    assert not set(first) & set(second)
    assert NO_JITTER.device_factors(streams, 9, "cnn") is None


def test_a_device_factor_multiplies_all_computing_and_is_not_expected() -> None:
    """Three samples of 2 s, of which one of two is only predicted; the transfers stay."""
    work = Work.of(2, download_bytes=1000, trained_samples=3, forward_samples=3)
    both = np.array([1, 0])
    latency = DriftscaleLatency(FLEET, 2.0, np.array([3.0, 0.5]))
    plain, slower = latency.expected.phases(both, work), latency.phases(both, work)
    assert slower.compute_s.tolist() == [0.5 * plain.compute_s[0], 3 * plain.compute_s[1]]
    assert slower.download_s.tolist() == plain.download_s.tolist()
    assert plain.total_s.tolist() == DriftscaleLatency(FLEET, 2.0).phases(both, work).total_s.tolist()


def test_factors_of_a_visit_multiply_its_computing_and_both_transfers() -> None:
    phases = Phases(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0]))
    times = phases.times(np.array([10.0, 2.0]), np.array([0.5, 4.0]))
    assert [times.download_s.tolist(), times.compute_s.tolist(), times.upload_s.tolist()] == [
        [0.5, 8.0],
        [30.0, 8.0],
        [2.5, 24.0],
    ]
