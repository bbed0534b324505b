"""Parallel runs: which run begins next, on which worker, and how its end is handled.

    order.py      the queue: which run a free worker gets next
    admission.py  how many runs fit into the memory of a machine
    pool.py       the protocol of the workers, as the command sees them, and their events
    workers.py    which workers are present, and which are free
    workplace.py  the worker's side: draws worlds and plays runs
    command.py    the command's side: dynamic load balancing, a worker gets the next job when it is free

`order` and `admission` are pure. `experiments.cluster` runs the processes.
"""
