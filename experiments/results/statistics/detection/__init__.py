"""How well detectors find drifts: decisions and flags of a log against the drifts that its header tells."""
