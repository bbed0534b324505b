"""Files: state and checkpoints, the run log, tables; read within stated bounds, written atomically."""
