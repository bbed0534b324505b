"""The results of run directories as pandas frames; pandas is imported nowhere else in this package."""
