"""Processes that run side by side, here or on a cluster: dask.distributed as driftscale runs it.

It owns settings, credentials, connections and what `driftscale cluster` starts, and knows nothing of runs.
Importing this package imports no dask; its modules `nodes`, `connection`, `serve` and `stopping` do.
"""
