"""Why everybody was, or was not, clustered anew: what a clusterer says of it for the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trigger:
    """What a clusterer compared when it was asked whether everybody is to be clustered anew.

    Distances are in the clusterer's own metric. It fires when `shift` reaches `threshold` x `mean_distance`.
    """

    shift: float  # of the centre that moved furthest
    mean_distance: float | None  # between two centres; None: there is one centre
    threshold: float | None  # None: it never fires
    clusters: int  # centres that were compared, before anybody is clustered anew
    fired: bool
