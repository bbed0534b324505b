"""`report.html`: the results of an experiment as a page that contacts no host."""

from experiments.results.drawing.plotly_js import plotly_path, write_plotly
from experiments.results.pages.report_page import write_report, write_results

__all__ = ["plotly_path", "write_plotly", "write_report", "write_results"]
