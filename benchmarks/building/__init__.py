"""Workloads of the builders of traces: of tables, and of images that are decoded."""
