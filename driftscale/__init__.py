"""Results of runs in a notebook: `load` gives them as pandas frames and plotly figures."""

from driftscale.results import Results, load

__all__ = ["Results", "load"]
