"""How often arms re-clustered and how alike the clients of a cluster are, in tables of many runs.

What is measured is among the costs of an arm.
"""

from __future__ import annotations

from experiments.results.tables.costs import global_reclusterings, mean_client_distance
from experiments.results.tables.quantities import is_ever_above_0
from experiments.results.tables.table import Table

GLOBAL_RECLUSTERINGS_NOTE = (
    "Global re-clusterings are those up to the horizon: rounds in which all clients were clustered anew."
)
CLIENT_DISTANCE_NOTE = (
    "Client distance is the mean distance of a client's data from those of the other members of its cluster "
    "(round.client_distance), averaged over clients and over evaluations up to the horizon."
)

TABLE = Table(
    title="Clusterings",
    in_many_runs=(
        global_reclusterings.noted(GLOBAL_RECLUSTERINGS_NOTE, only_if=is_ever_above_0),
        mean_client_distance.noted(CLIENT_DISTANCE_NOTE),
    ),
)
