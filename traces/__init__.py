"""Traces: the samples that reach each client over time, and the times at which clients are online."""
