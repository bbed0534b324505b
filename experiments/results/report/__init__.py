"""`report.html`: what a run came to, in one file that contacts no host."""

from experiments.results.report.page import write_report

__all__ = ["write_report"]
