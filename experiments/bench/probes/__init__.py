"""Programs that a workload starts as its own processes, to measure them from outside."""
