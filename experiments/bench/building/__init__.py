"""Workloads of the builders of traces."""
