"""What a workload starts as a process of its own, to measure it from without."""
