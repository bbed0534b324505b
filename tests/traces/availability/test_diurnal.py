import numpy as np
import pyarrow.parquet as pq
import pytest

from emulator.errors import UnknownNameError
from emulator.seeding import RandomStreams
from tests.traces.availability.online_fraction import online_fraction
from traces.availability import AVAILABILITIES, DeviceIntervals, IntervalAvailability
from traces.availability.diurnal import generate, published_curve

NUM_DEVICES = 20_000
HOURS = 96
DAY_S = 86_400


def built(num_clients: int, kind: str = "diurnal", **settings):
    source = AVAILABILITIES.find(kind)
    generator = RandomStreams(0).generator("availability")
    return source(source.Settings(**settings)).build(num_clients, generator, lambda path: pytest.fail(path))


@pytest.fixture(scope="module")
def hourly() -> np.ndarray:
    """(96,) the share of 20,000 devices that is online."""
    return online_fraction(built(NUM_DEVICES), NUM_DEVICES, HOURS)


@pytest.fixture(scope="module")
def devices() -> DeviceIntervals:
    return generate(NUM_DEVICES, np.random.default_rng(1))


@pytest.mark.slow
def test_the_mean_share_online_is_the_published_one(hourly):
    assert hourly.mean() == pytest.approx(0.203, abs=0.005)


def test_hourly_means_follow_the_curve_that_is_shipped(hourly):
    assert np.sqrt(((hourly - published_curve()) ** 2).mean()) < 0.01


def test_hourly_means_follow_the_published_curve(hourly, device_data):
    table = pq.read_table(device_data / "fedscale_availability_curve_96h.parquet")
    hour = np.floor(table["hour"].to_numpy()).astype(int)
    published = np.bincount(hour, table["available_fraction"].to_numpy()) / np.bincount(hour)
    assert np.sqrt(((hourly - published) ** 2).mean()) < 0.01
    assert published_curve() == pytest.approx(published, abs=1e-5)


def test_starts_are_deconvolved_so_that_no_hour_of_the_day_lags(hourly):
    ours, published = (curve.reshape(4, 24).mean(axis=0) for curve in (hourly, published_curve()))
    assert np.sqrt(((ours - published) ** 2).mean()) < 0.006
    assert abs(int(ours.argmax()) - int(published.argmax())) <= 1


@pytest.mark.slow
def test_hours_online_spread_over_devices_as_published(devices):
    online_s = np.bincount(
        np.repeat(np.arange(NUM_DEVICES), devices.num_intervals), devices.end_s - devices.start_s
    )
    recorded_h = np.minimum(devices.period_s / 3600, HOURS)  # the published figures exclude repetitions
    hours = online_s / devices.period_s * recorded_h
    quantiles = np.quantile(hours, [0.05, 0.25, 0.5, 0.75, 0.9])
    assert quantiles == pytest.approx([2.2, 7.9, 14.6, 24.1, 34.7], abs=1.5)


def test_periods_are_whole_days_as_published(devices):
    days = devices.period_s / DAY_S
    shares = [(days == 1).mean(), (days == 2).mean(), (days == 3).mean(), (days >= 4).mean()]
    assert shares == pytest.approx([0.075, 0.093, 0.098, 0.734], abs=0.01)
    assert days.mean() == pytest.approx(4.55, abs=0.05)


def test_pushing_sessions_later_leaves_them_apart_and_loses_no_time(devices):
    follows = np.ones(len(devices.start_s), dtype=bool)
    follows[devices.offsets[:-1]] = False
    first, last = devices.offsets[:-1], devices.offsets[1:] - 1
    assert (devices.start_s[follows] > devices.end_s[:-1][follows[1:]]).all()
    assert (devices.end_s[last] < devices.start_s[first] + devices.period_s).all()
    assert ((devices.start_s >= 0) & (devices.end_s > devices.start_s)).all()

    fraction = np.add.reduceat(devices.end_s - devices.start_s, first) / devices.period_s
    assert fraction.std() == pytest.approx(np.random.default_rng(0).beta(1.9, 7.45, 100_000).std(), rel=0.03)


def test_the_same_generator_gives_the_same_devices():
    first, second = (generate(500, np.random.default_rng(5)) for _ in range(2))
    assert (first.start_s == second.start_s).all()
    assert (first.start_s != generate(500, np.random.default_rng(6)).start_s[: len(first.start_s)]).any()


def test_more_clients_than_devices_share_them():
    availability = built(1000, num_devices=30)
    assert availability.num_devices == 30
    assert np.ptp(np.bincount(availability.device_of)) <= 1


@pytest.mark.parametrize("num_clients", [1, 2, 7])
def test_small_fleets_can_be_drawn(num_clients):
    availability = built(num_clients)
    assert isinstance(availability, IntervalAvailability)
    assert (availability.next_online_s(np.arange(num_clients), 1e6) > 1e6).all()


def test_always_is_always():
    availability = built(5, "always")
    ids = np.array([4, 0])
    assert availability.online(ids, 1e9).tolist() == [True, True]
    assert availability.next_offline_s(ids, 0).tolist() == [np.inf, np.inf]
    assert availability.next_online_s(ids, 0).tolist() == [np.inf, np.inf]


def test_an_unknown_source_lists_the_choices():
    with pytest.raises(UnknownNameError, match="choices: always, diurnal, intervals; did you mean 'diurnal'"):
        AVAILABILITIES.find("diurnl")
