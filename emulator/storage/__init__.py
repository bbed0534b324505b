"""State and checkpoints, log lines and the run log, tables: files are read within bounds, written whole."""
