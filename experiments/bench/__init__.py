"""How fast driftscale is, measured against plain references in the same process run.

A workload is a function that takes its sizes and gives figures; `registry` names them all. The references are
written here, plainly: what a reader would write without us. That of local training needs torch and is
`executor.training.plain_loop`. Nothing here is part of a run.
"""
