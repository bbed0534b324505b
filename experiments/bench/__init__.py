"""The bench: the speed of driftscale, measured against plain references in the same process.

A workload is a function that takes its sizes and returns figures; `registry` lists all workloads. The
references are plain implementations, such as a reader would write without driftscale. The reference of local
training needs torch and is `executor.training.plain_loop`. Nothing here is part of a run.
"""
