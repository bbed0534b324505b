"""Availability drawn to resemble FedScale's published trace: charging phones with a daily rhythm.

The trace itself (107,749 phones, from FLASH, WWW 2021) is not shipped here. These facts about it are
published: the distribution of its periods, the mean and spread of the available fraction, the mean number of
intervals, and the share of phones online over its first 96 hours, whose hourly means are in
`diurnal_curve.csv` (FedScale, github.com/SymbioticLab/FedScale, Apache-2.0; digitised from the published
plot).
"""

from __future__ import annotations

from importlib import resources

import numpy as np
from pydantic import Field

from emulator import plugins
from emulator.arrays import Floats, Ints
from emulator.assigning import deal
from emulator.numbers import Count
from traces.availability.base import AvailabilitySource, Locate
from traces.availability.interval_availability import DeviceIntervals, IntervalAvailability, lay_out

HOUR_S, DAY_S = 3_600, 86_400
HOURS_PER_DAY = 24

# Published: 7.5 % of periods are 1 day long, 9.3 % 2, 9.8 % 3; the others 4 to 15, 5.44 in the mean.
SHARE_OF_DAYS = (0.075, 0.093, 0.098, 0.734)
MEAN_DAYS_ABOVE_4 = 1.44
MOST_DAYS = 15
FRACTION_BETA = (1.9, 7.45)  # fits the published spread; its mean, 20.3 %, is the curve's
SESSIONS_PER_DAY = 4.57
SESSIONS_SIGMA = 1.0  # of the logarithm; our choice: only a heavy tail is published
DECONVOLUTION_STEPS = 500


class DiurnalSettings(plugins.Settings):
    """Settings of the source `diurnal`."""

    num_devices: Count = Field(
        107_749,
        description="the most devices that are drawn; more clients than that share them. The default is the "
        "number in FedScale's trace",
        examples=[1000],
    )


class Diurnal(AvailabilitySource):
    """Charging phones with FedScale's daily rhythm; every client gets a generated device.

    Source: FedScale's availability trace, from published facts about it (FLASH, WWW 2021).

    >>> from pathlib import Path
    >>> source = Diurnal(DiurnalSettings(num_devices=100))
    >>> phones = source.build(1000, np.random.default_rng(0), locate=Path)
    >>> phones.online(np.arange(8), 6 * 3600.0).astype(int)
    array([0, 1, 0, 0, 1, 0, 0, 1])
    """

    Settings = DiurnalSettings
    settings: DiurnalSettings

    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> IntervalAvailability:
        num_devices = min(num_clients, self.settings.num_devices)
        intervals = generate(num_devices, generator)
        return IntervalAvailability(intervals, deal(num_clients, num_devices, generator))


def generate(num_devices: int, generator: np.random.Generator) -> DeviceIntervals:
    """Generate online intervals (sessions) of `num_devices` devices, in whole seconds.

    Virtual time 0 is midnight for all devices. A device's online time is split at random over its sessions.
    They start on any day of the period, at an hour drawn such that sessions of these lengths add up to the
    published curve. A session that would overlap the previous one is pushed later, around the end of the
    period if necessary: merging the two would lose online time.
    """
    days = _draw_days(num_devices, generator)
    period_s = days * DAY_S
    per_day = generator.lognormal(
        np.log(SESSIONS_PER_DAY) - SESSIONS_SIGMA**2 / 2, SESSIONS_SIGMA, num_devices
    )
    count = np.maximum(np.rint(per_day * days), 1).astype(np.int64)
    device = np.repeat(np.arange(num_devices), count)

    online_s = generator.beta(*FRACTION_BETA, num_devices) * period_s
    parts = generator.standard_exponential(len(device))
    scale = np.maximum(online_s - count, 0) / np.bincount(device, weights=parts)
    length_s = 1 + (parts * scale[device]).astype(np.int64)

    density = _start_density(length_s, 1.0 / days[device])
    hour = generator.choice(HOURS_PER_DAY, len(device), p=density)
    day = generator.integers(days[device])
    start_s = day * DAY_S + hour * HOUR_S + generator.integers(HOUR_S, size=len(device))
    start_s = _push_apart(device, start_s, length_s, count, period_s)
    end_s = (start_s + length_s).astype(np.float64)
    return lay_out(device, start_s.astype(np.float64), end_s, period_s.astype(np.float64))


def published_curve() -> Floats:
    """(96,) the published share of devices online, hour by hour."""
    table = resources.files("traces.availability").joinpath("diurnal_curve.csv").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if not line.startswith("#")]
    return np.loadtxt(rows, delimiter=",", skiprows=1, usecols=1)


def _draw_days(num_devices: int, generator: np.random.Generator) -> Ints:
    """(D,) lengths of periods, in days."""
    days = generator.choice([1, 2, 3, 4], num_devices, p=SHARE_OF_DAYS)
    excess = generator.geometric(1 / (1 + MEAN_DAYS_ABOVE_4), num_devices) - 1
    return np.minimum(np.where(days == 4, 4 + excess, days), MOST_DAYS)


def _start_density(length_s: Ints, weight: Floats) -> Floats:
    """(24,) probabilities of starting hours with which sessions add up to the mean day of the curve.

    Session i lasts `length_s[i]` and counts `weight[i]`, its number of repetitions per day. A session is
    online long after it started, so the mean day is the density convolved, cyclically over the day, with
    `survival`: the online time, in the m-th hour after its start, of a session that starts within an hour.
    The convolution is inverted by Richardson-Lucy steps, which keep the density positive and its sum
    constant.
    """
    survival = _mean_survival(length_s / HOUR_S, weight)
    hours = np.arange(HOURS_PER_DAY)
    blur = survival[(hours[:, None] - hours) % HOURS_PER_DAY]  # [online hour, start hour], columns sum to 1
    target = published_curve().reshape(-1, HOURS_PER_DAY).mean(axis=0)
    target /= target.sum()
    density: Floats = np.full(HOURS_PER_DAY, 1 / HOURS_PER_DAY)
    for _ in range(DECONVOLUTION_STEPS):
        density *= blur.T @ (target / (blur @ density))
    density /= density.sum()
    return density


def _mean_survival(length_h: Floats, weight: Floats) -> Floats:
    """(24,) the share of the sessions' online time that lies m hours after the hour of their start.

    Entry m also contains the hours m + 24, m + 48, ...; the entries sum to 1. `length_h` and `weight` have
    one entry per session. Starts are uniform within their hour, so the online time is the second difference,
    at whole hours, of the survival function integrated twice: x^2 / 2 for a session longer than x, else
    length * (x - length / 2).
    """
    hour = length_h.astype(np.int64)
    edges = np.arange(hour.max() + 3)

    def ended_before(values: Floats) -> Floats:
        """At each edge, the sum over the sessions shorter than it."""
        return np.append(0.0, np.cumsum(np.bincount(hour, values, minlength=len(edges) - 1)))

    lasting = weight.sum() - ended_before(weight)
    ended = edges * ended_before(weight * length_h) - ended_before(weight * length_h**2 / 2)
    twice = ended + lasting * edges**2 / 2
    by_hour = np.diff(twice, n=2, prepend=0.0)
    survival: Floats = np.bincount(
        np.arange(len(by_hour)) % HOURS_PER_DAY, by_hour, minlength=HOURS_PER_DAY
    ).astype(np.float64)
    survival /= survival.sum()
    return survival


def _push_apart(device: Ints, start_s: Ints, length_s: Ints, count: Ints, period_s: Ints) -> Ints:
    """(I,) starts in [0, period) that keep the sessions of each device apart.

    Each device's requested starts are sorted first: its k-th session gets the k-th smallest. A session starts
    at its requested time or when the previous one ends, whichever is later. Unrolled, that is the maximum,
    over this and all earlier sessions, of the requested start plus the lengths in between. If the last
    session runs past the end of the period, it continues at the beginning, and its end there is one more
    candidate of the maximum.
    """
    span = 1 << 22  # more than twice any period: the values of different devices do not overlap
    start_s = np.sort(device * span + start_s) - device * span
    last = np.cumsum(count) - 1
    before_s = np.cumsum(length_s) - length_s  # of all earlier sessions, also of other devices
    before_s -= before_s[last - count + 1][device]
    wish_s = np.maximum.accumulate(device * span + start_s - before_s) - device * span
    idle_s = period_s - before_s[last] - length_s[last]
    wish_s = np.maximum(wish_s, (wish_s[last] - idle_s)[device])
    pushed_s: Ints = (wish_s + before_s) % period_s[device]
    return pushed_s
