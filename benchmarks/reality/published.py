"""How far published training times and link rates spread: the figures of docs/explanation/how-true.md.

`python -m benchmarks.reality.published FOLDER` reads three tables below FOLDER: the training times that
FLHetBench measured on phones, MobiPerf's downloads, and traces of bandwidth over time.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from emulator.errors import InputError

PHONES = "devices/phone_training_latency_flhetbench.csv"
DOWNLOADS = "devices/mobiperf_tcp_down_2018_91dev.csv"
TRACES = "network/bandwidth_traces.parquet"

LEAST_READINGS = 5
"""Downloads and traces with fewer readings are left out: their own deviation is known too badly."""
WINDOW_S = 30.0

Figures = Mapping[str, float]
"""Numbers by what they are; a spread is the standard deviation of the natural logarithm."""


def training_times(phones: pd.DataFrame) -> Figures:
    """How two models differ on the phones on which both were timed, ms, and how single timings repeat."""
    single = phones[phones["ResNet Latency"] > 0]
    timed = single[single["Vit Latency"] > 0]
    log_ratio = np.log(timed["Vit Latency"] / timed["ResNet Latency"])
    ratio, name = np.exp(log_ratio), timed["Phone Model"].str.lower()
    is_clear = timed["Vit STD"] <= timed["Vit Latency"]
    is_apple = name.str.startswith(("iphone", "ipad"))
    of_rest = log_ratio[is_clear & ~is_apple]
    return {
        "rows with two models timed": len(timed),
        "phone models among them": name.nunique(),
        "rows whose deviation exceeds its mean": (~is_clear).sum(),
        "ratio of the two times, least": ratio.min(),
        "ratio of the two times, most without such rows": ratio[is_clear].max(),
        "ratio of the two times, most": ratio.max(),
        "its spread without such rows": log_ratio[is_clear].std(),
        "its spread": log_ratio.std(),
        "half of the ratios lie so far from the median, %": 100 * (ratio / ratio.median() - 1).abs().median(),
        "Apple's rows": is_apple.sum(),
        "Apple's ratio over that of the rest": math.exp(log_ratio[is_apple].mean() - of_rest.mean()),
        "spread of the rest": of_rest.std(),
        "timings of one sitting, slow model, median deviation, %": _deviation(timed, "Vit"),
        "timings of one sitting, fast model, median deviation, %": _deviation(timed, "ResNet"),
        "rows of one phone model, at most so many times apart": _apart(timed["Vit Latency"], name),
        "the same among all rows of the fast model": _apart(
            single["ResNet Latency"], single["Phone Model"].str.lower()
        ),
    }


def download_rates(downloads: pd.DataFrame) -> Figures:
    """How readings within one download spread, by link; its readings are a list in JSON, kbit/s."""
    readings = downloads["tcp_down_kbps"].map(json.loads)
    spreads = [np.log(kbps).std(ddof=1) for kbps in readings if len(kbps) >= LEAST_READINGS]
    return {
        "downloads": len(spreads),
        "readings within one download, median spread": float(np.median(spreads)),
    }


def link_rates(traces: pd.DataFrame) -> Figures:
    """How means over half a minute spread along one link, Mbit/s; means of zero have no logarithm."""
    windows = [traces["source"].astype(str), traces["trace"].astype(str), traces["t_s"] // WINDOW_S]
    means = traces["mbps"].astype(float).groupby(windows).mean()
    along = np.log(means[means > 0]).groupby(level=["source", "trace"]).agg(["size", "std"])
    spreads = along[along["size"] >= LEAST_READINGS]["std"]
    by_source = spreads.groupby(level="source").median().sort_values()
    return {
        "traces": len(spreads),
        "half-minute means along one link, median spread": spreads.median(),
        **{f"of these, {source}": spread for source, spread in by_source.items()},
    }


def mean_factor(sd: float) -> float:
    """The mean of a log-normal factor of median 1 whose logarithm has this standard deviation."""
    return math.exp(sd**2 / 2)


def published(folder: Path) -> Figures:
    """All figures. InputError if a table is not there."""
    for path in (PHONES, DOWNLOADS, TRACES):
        if not (folder / path).is_file():
            raise InputError(f"{folder}: no {path}; FOLDER has the published tables")
    grown = {f"mean of a factor of spread {sd}": mean_factor(sd) for sd in (0.03, 0.2, 0.3, 0.36, 0.9)}
    return {
        **training_times(pd.read_csv(folder / PHONES)),
        **download_rates(pd.read_csv(folder / DOWNLOADS)),
        **link_rates(pd.read_parquet(folder / TRACES)),
        **grown,
    }


def _deviation(timed: pd.DataFrame, model: str) -> float:
    return 100 * float((timed[f"{model} STD"] / timed[f"{model} Latency"]).median())


def _apart(times: pd.Series, name: pd.Series) -> float:
    by_name = times.groupby(name)
    return float((by_name.max() / by_name.min()).max())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.reality.published FOLDER")
    try:
        figures = published(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(str(error))
    sys.stdout.writelines(f"{value:8.4g}  {meaning}\n" for meaning, value in figures.items())
