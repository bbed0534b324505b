"""Decisions: who belongs to which model, who takes part, and what becomes of what comes back."""
