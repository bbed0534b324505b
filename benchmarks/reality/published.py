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

PHONES = "devices/phone_training_latency_flhetbench.csv"
DOWNLOADS = "devices/mobiperf_tcp_down_2018_91dev.csv"
TRACES = "network/bandwidth_traces.parquet"

LEAST_READINGS = 5
"""Downloads and traces with fewer readings are left out: their deviation is hardly known."""
WINDOW_S = 30.0

Figures = Mapping[str, float]
"""Numbers by what they are; a spread is the standard deviation of the natural logarithm."""


def training_times(folder: Path) -> Figures:
    """How two models differ on the phones on which both were timed, and how timings repeat."""
    phones = pd.read_csv(folder / PHONES)
    timed = phones[(phones["Vit Latency"] > 0) & (phones["ResNet Latency"] > 0)]
    slow, fast, name = timed["Vit Latency"], timed["ResNet Latency"], timed["Phone Model"].str.lower()
    ratio, log_ratio = slow / fast, np.log(slow / fast)
    is_clear, is_apple = timed["Vit STD"] <= slow, name.str.startswith(("iphone", "ipad"))
    rest = log_ratio[is_clear & ~is_apple]
    of_phone = slow.groupby(name)
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
        "Apple's ratio over that of the rest": math.exp(log_ratio[is_apple].mean() - rest.mean()),
        "spread of the rest": rest.std(),
        "timings of one sitting, slow model, median deviation, %": 100 * (timed["Vit STD"] / slow).median(),
        "timings of one sitting, fast model, median deviation, %": 100
        * (timed["ResNet STD"] / fast).median(),
        "rows of one phone model, at most so many times apart": (of_phone.max() / of_phone.min()).max(),
    }


def download_rates(folder: Path) -> Figures:
    """How readings within one download spread, by link."""
    downloads = pd.read_csv(folder / DOWNLOADS)["tcp_down_kbps"].map(json.loads)
    spreads = [np.log(kbps).std(ddof=1) for kbps in downloads if len(kbps) >= LEAST_READINGS]
    return {"downloads": len(spreads), "readings in one download, median spread": float(np.median(spreads))}


def link_rates(folder: Path) -> Figures:
    """How means over half a minute spread along one link; a mean of 0 has no logarithm, and is left out."""
    traces = pd.read_parquet(folder / TRACES).astype({"source": str, "trace": str, "mbps": float})
    means = traces.groupby(["source", "trace", traces["t_s"] // WINDOW_S])["mbps"].mean()
    along = np.log(means[means > 0]).groupby(level=["source", "trace"]).agg(["size", "std"])
    spreads = along[along["size"] >= LEAST_READINGS]["std"]
    by_source = spreads.groupby(level="source").median().sort_values()
    median = {"traces": len(spreads), "half-minute means along one link, median spread": spreads.median()}
    return median | {f"of these, {source}": spread for source, spread in by_source.items()}


def mean_factor(sd: float) -> float:
    """The mean of a log-normal factor of median 1 whose logarithm has this standard deviation."""
    return math.exp(sd**2 / 2)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.reality.published FOLDER")
    tables = Path(sys.argv[1])
    try:
        figures = {**training_times(tables), **download_rates(tables), **link_rates(tables)}
    except FileNotFoundError as error:
        sys.exit(f"{error.filename}: not there; FOLDER has the published tables")
    figures |= {f"mean of a factor of spread {sd}": mean_factor(sd) for sd in (0.03, 0.2, 0.3, 0.36, 0.9)}
    sys.stdout.writelines(f"{value:8.4g}  {meaning}\n" for meaning, value in figures.items())
