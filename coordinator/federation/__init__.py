"""What happens in a round: open it, dispatch a cohort, aggregate its updates, measure and record.

The interface is `Federation`, whose methods take instants and return instants and visits; it knows no events.
"""

from coordinator.federation.cohort import SentOut
from coordinator.federation.federation import Federation

__all__ = ["Federation", "SentOut"]
