"""Results of finished runs: the run directory, time-to-accuracy, intervals, tables and the report."""
