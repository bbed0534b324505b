"""A device measured: the file that times the model of a configuration on it."""
