"""How often arms re-clustered and how alike the clients of a cluster are, in tables of many runs.

What is measured is among the costs of an arm.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.results.tables.costs import (
    CLIENT_DISTANCE,
    RECLUSTERINGS,
)
from experiments.results.tables.table import InManyRuns, Table

GLOBAL_RECLUSTERINGS_NOTE = (
    "Global re-clusterings are those up to the horizon: rounds in which all clients were clustered anew."
)
CLIENT_DISTANCE_NOTE = (
    "Client distance is the mean distance of a client's data from those of the other members of its cluster "
    "(round.client_distance), averaged over clients and over evaluations up to the horizon."
)

TABLE = Table(
    title="Clusterings",
    in_many_runs=InManyRuns(
        keys=("global_reclusterings", "mean_client_distance"),
        columns=(
            replace(RECLUSTERINGS, only_if=lambda found: any(any(number.per_seed) for number in found)),
            CLIENT_DISTANCE,
        ),
        notes={
            "global_reclusterings": GLOBAL_RECLUSTERINGS_NOTE,
            "mean_client_distance": CLIENT_DISTANCE_NOTE,
        },
    ),
)
