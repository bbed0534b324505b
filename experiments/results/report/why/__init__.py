"""The report's answer to "Why?": when clusters were made anew, and what rounds waited for."""

from experiments.results.report.why.section import Why, why, why_plots

__all__ = ["Why", "why", "why_plots"]
