"""What a method does in a round: open it, dispatch a cohort, aggregate what came back, measure, record.

This is its front; it takes instants and returns instants and visits, and sees no event.
"""

from coordinator.federation.cohort import EndedVisits, SentOut
from coordinator.federation.federation import Federation

__all__ = ["EndedVisits", "Federation", "SentOut"]
