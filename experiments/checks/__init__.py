"""Checks of an experiment in its worlds, before any run: what the configuration alone cannot show.

    arms.py      each arm, in the world of a seed: parts that do not fit each other, memory that is not there
    stopping.py  arms whose clients stop early
    seeds.py     what may differ between the worlds of the seeds
    contracts.py the contracts of parts of one's own, if they are asked for

What is about one part is in its `check_run`.
"""
