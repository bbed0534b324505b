"""From finished runs to figures: the run directory, time-to-accuracy, intervals, tables and the report."""
