"""Drift in the figures of a run: drift cells, mass events, and the levels before and after one."""
