"""What the report answers its readers with: plots by question, the table per seed, and provenance."""
