"""Playing an experiment: its plan, its runs and their attempts, locks, signals and clean-up."""
