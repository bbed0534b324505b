"""The bench: the speed and memory of driftscale, measured in turns with plain references.

A workload is a function that takes a number of repeats and returns figures; `registry` lists all workloads.
The references are plain implementations, such as a reader would write without driftscale. The reference of
local training needs torch and is `executor.training.plain_loop`. Nothing here is part of a run.
"""
