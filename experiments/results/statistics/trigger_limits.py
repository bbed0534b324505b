"""What a trigger of a global re-clustering measured, and the limit that it compared it with."""

from __future__ import annotations

from emulator.messages import AnyTrigger, PairwiseTrigger


def measured(trigger: AnyTrigger) -> float | None:
    """The distance that is compared with the limit: the shift, or the largest distance in a cluster."""
    return trigger.largest_distance if isinstance(trigger, PairwiseTrigger) else trigger.shift


def limit(trigger: AnyTrigger, *, are_squared: bool) -> float | None:
    """The distance from which the trigger fires; None if it never fires, or if there was one centre.

    `are_squared`: whether the clusterer's distances are squared, and so the threshold with them.

    >>> from emulator.messages import Trigger
    >>> trigger = Trigger(shift=1.0, mean_distance=8.0, threshold=0.5, clusters=2, fired=False)
    >>> limit(trigger, are_squared=False), limit(trigger, are_squared=True)
    (4.0, 2.0)
    """
    if isinstance(trigger, PairwiseTrigger):
        return trigger.delta
    if trigger.threshold is None or trigger.mean_distance is None:
        return None
    share = trigger.threshold**2 if are_squared else trigger.threshold
    return share * trigger.mean_distance
