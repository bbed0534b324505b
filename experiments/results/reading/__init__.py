"""Files on disk: run directories with their logs and JSON files, and recorded configurations."""
