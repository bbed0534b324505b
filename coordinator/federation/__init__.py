"""What a method does: open a round, dispatch a cohort, aggregate what came back, measure. Sees no event."""
