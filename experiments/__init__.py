"""Composition: from a configuration to runs, and from runs to time-to-accuracy and a report."""
