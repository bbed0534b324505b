"""Methods beside a rival, drift by drift."""
