"""Runs side by side: which run is begun next, on which worker, and what becomes of it.

    order.py      the queue: which run a free worker gets
    admission.py  how many runs the memory of a machine holds
    roster.py     which workers are there, and free
    workplace.py  a worker's side: draws worlds and plays runs
    command.py    the command's side: hands out runs until all have ended

`order` and `admission` are pure. The processes are those of `experiments.cluster`.
"""
