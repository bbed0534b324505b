"""The bench: the speed and memory of driftscale, measured in turns with plain references.

A workload is a function that takes a number of repeats and returns figures; `registry` lists all workloads.
The references are plain implementations, such as a reader would write without driftscale (`rivals`). Nothing
here is part of a run, or of the wheel: `python -m benchmarks` needs a checkout. `reality` compares predicted
rounds with those of real processes.
"""
