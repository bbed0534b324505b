"""Checks of an experiment in its worlds, before any run: what the configuration alone cannot show.

arms.py       each arm, in the world of a seed: parts that do not fit each other, memory that is not there
schedules.py  the schedules of an arm
stopping.py   arms whose clients stop early
seeds.py      what may differ between the worlds of the seeds
"""
