"""Playing an experiment: its plan, its runs and their attempts, locks, signals and what is left behind."""
