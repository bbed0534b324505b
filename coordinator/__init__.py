"""Decisions: which client belongs to which model, who takes part, and how updates become models."""
