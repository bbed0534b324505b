"""`report.html`: the results of an experiment as one file that contacts no host."""

from experiments.results.report.page import write_report, write_results

__all__ = ["write_report", "write_results"]
