"""Parallel processes on this machine or on a cluster, by dask.distributed.

Owns dask's settings, credentials, connections and the servers that `driftscale cluster` starts. Only
`pool.py` and `members.py` know of runs. Importing this package does not import dask; its modules `nodes`,
`connection`, `pool`, `scratch`, `serve` and `stopping` do.
"""
