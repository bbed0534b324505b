"""Trackers: programs that plot runs, such as TensorBoard and MLflow, fed with the rounds of each run.

A run feeds them while it is played (`live.py`), and `driftscale export` from its log (`finished.py`): both
give the same points. Trackers decide nothing: the log of a run is the same with and without them.
"""
