"""The coordinator: which client belongs to which model, who takes part, and how updates make models."""
