"""Workloads of parts: detectors that watch training, and solvers that remember."""
