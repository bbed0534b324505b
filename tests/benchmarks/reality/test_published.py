"""The published figures, on made tables whose figures are known in closed form."""

import math
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.reality.published import (
    DOWNLOADS,
    PHONES,
    TRACES,
    download_rates,
    link_rates,
    mean_factor,
    training_times,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratios e, e³ and e² of Android, e⁴ of Apple, and one whose deviation exceeds its mean."""
    folder = tmp_path_factory.mktemp("tables")
    for path in (PHONES, DOWNLOADS, TRACES):
        (folder / path).parent.mkdir(exist_ok=True)
    ratios = {"a1": 1, "A1": 3, "a2": 2, "iPhone 1": 4, "a3": 6}
    rows = [[name, 10 * math.exp(power), 0.2, 10.0, 0.5] for name, power in ratios.items()]
    rows[-1][2] = 10_000.0
    rows += [["a3", None, None, 40.0, 0.0], ["a4", None, None, -1.0, 0.0]]
    columns = ["Phone Model", "Vit Latency", "Vit STD", "ResNet Latency", "ResNet STD"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / PHONES, index=False)
    kbps = [[1.0, math.e**2] * 3, [1.0, 100.0]]
    pd.DataFrame({"tcp_down_kbps": map(str, kbps)}).to_csv(folder / DOWNLOADS, index=False)
    traces = [("one", window, math.exp(window % 2)) for window in range(6)]
    traces += [("two", window, 4.0) for window in range(4)]
    rates = [
        ("s", trace, 30 * window + at, 2 * at / 20 * mbps) for trace, window, mbps in traces for at in (0, 20)
    ]
    pd.DataFrame(rates, columns=["source", "trace", "t_s", "mbps"]).to_parquet(folder / TRACES)
    return folder


def test_ratios_spread_by_their_logarithms_with_and_without_the_row_that_deviates(folder: Path) -> None:
    figures = training_times(folder)

    assert figures["rows with two models timed"] == 5
    assert figures["phone models among them"] == 4
    assert figures["rows whose deviation exceeds its mean"] == 1
    assert figures["its spread without such rows"] == pytest.approx(math.sqrt(5 / 3))
    assert figures["its spread"] == pytest.approx(math.sqrt(14.8 / 4))
    assert figures["ratio of the two times, most without such rows"] == pytest.approx(math.e**4)


def test_apple_stands_beside_the_rest_that_does_not_deviate(folder: Path) -> None:
    figures = training_times(folder)

    assert figures["Apple's ratio over that of the rest"] == pytest.approx(math.e**2)
    assert figures["spread of the rest"] == pytest.approx(1.0)


def test_rows_of_one_phone_model_are_so_many_times_apart(folder: Path) -> None:
    figures = training_times(folder)

    assert figures["rows of one phone model, at most so many times apart"] == pytest.approx(math.e**2)


def test_rates_spread_within_downloads_and_half_minutes_and_short_ones_do_not_count(folder: Path) -> None:
    figures = {**download_rates(folder), **link_rates(folder)}

    assert figures["downloads"] == 1
    assert figures["readings in one download, median spread"] == pytest.approx(math.sqrt(6 / 5))
    assert figures["traces"] == 1
    assert figures["half-minute means along one link, median spread"] == pytest.approx(math.sqrt(0.3))


def test_a_factor_of_median_1_has_a_mean_above_it() -> None:
    assert [round(mean_factor(sd), 2) for sd in (0.0, 0.2, 0.36)] == [1.0, 1.02, 1.07]
