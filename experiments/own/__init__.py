"""Own code in an experiment: its parts, their trial before a run, and the watch over a run."""
