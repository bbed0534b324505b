"""Parts as a third party wrote them before version 0.1 settled its names: all of these go with 0.2.0."""

import numpy as np
from pydantic import Field

from coordinator.aggregators import Aggregator
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.memories.held import Held, HeldParameters
from coordinator.pacing import CohortSize, Pacing
from coordinator.schedules import Schedule
from coordinator.selectors import Pool, Selector
from coordinator.view import View
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.numbers import Count, Duration
from emulator.plugins import NoParameters, Parameters
from traces.draw import StreamParameters, draw_trace, num_windows
from traces.images import ImageSet
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace


class EvenAndOdd(Clusterer):
    """Two models: one for clients of even ids, one for those of odd ids."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is not None:
            return None
        return Assignment.fresh(np.arange(view.num_clients) % 2, 2, view.initial(0))


class SemiSyncParameters(Parameters):
    wait_s: Duration = Field(10.0, description="after this time, one client that is back is enough")


class SemiSync(Pacing):
    """Waits for half of its participants, but only for some time, and abandons the others."""

    Parameters = SemiSyncParameters

    def __init__(self, parameters: SemiSyncParameters, cohort: CohortSize) -> None:
        self.parameters = parameters
        self.cohort = cohort
        self.deadline_s = parameters.wait_s

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        enough = np.where(elapsed_s >= self.deadline_s, 1, self.cohort.participants / 2)
        nothing_out = out.sum(axis=-1, keepdims=True) == 0
        return (back.sum(axis=-1, keepdims=True) >= enough) | nothing_out

    absorbs = full

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return True


class CloudsParameters(StreamParameters):
    clients: Count = Field(20, description="how many clients there are")


class Clouds(TraceSource):
    """Two clouds of points, a label each; clients that see more of one see more of the other later."""

    Parameters = CloudsParameters

    def __init__(self, parameters: CloudsParameters) -> None:
        self.parameters = parameters

    def build(self, context: TraceContext) -> Trace:
        labels = np.arange(400) % 2
        points = context.streams.generator("clouds").normal(labels[:, None], 0.3, size=(400, 2))
        images = ImageSet(
            points.astype(np.float32), 1.0, labels, 2, train=np.arange(300), test=np.arange(300, 400)
        )
        second = np.linspace(0.1, 0.9, self.parameters.clients)
        shares = np.stack([1 - second, second], axis=1)  # (clients, labels)
        windows = num_windows(self.parameters, context.rounds)
        return draw_trace(
            images,
            (shares if 2 * window < windows else shares[::-1] for window in range(windows)),
            num_clients=self.parameters.clients,
            num_windows=windows,
            parameters=self.parameters,
            streams=context.streams,
            scratch=context.scratch,
        )


class Swapping(Clusterer):
    """Two models whose rows change places each time data arrive."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is None:
            return Assignment.fresh(np.arange(view.num_clients) % 2, 2, view.initial(0))
        if len(view.changed) == 0:
            return None
        return Assignment(
            remix=np.eye(2)[::-1],
            extra=np.zeros((0, 0), dtype=np.float32),
            heir=np.array([1, 0]),
            members=1 - view.assignment.members,
        )


class Firsts(Selector):
    """The first clients of each lane."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def select(self, pool: Pool, wanted: Ints, view: View) -> Ints:
        return np.sort(np.concatenate([pool.ids(lane)[:count] for lane, count in enumerate(wanted)]))


class Mean(Aggregator):
    """Each model moves by the mean of its updates."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        mine = view.model_ids[:, None] == updates.model
        weights = mine / np.maximum(mine.sum(axis=1, keepdims=True), 1)
        return (view.models + updates.mix(weights)).astype(np.float32)


class Remembering(Held):
    """Counts how often the models changed."""

    state_fields = ("changes",)

    def __init__(self, parameters: HeldParameters) -> None:
        super().__init__(parameters)
        self.changes = 0

    def remix(self, assignment: Assignment) -> None:
        super().remix(assignment)
        self.changes += 1


class HalfRate(Schedule):
    """Half of the configured learning rate."""

    Parameters = NoParameters
    sets = frozenset({"learning_rate"})

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def settings(self, client: Ints, model: Ints, base: dict[str, Floats], view: View) -> dict[str, Floats]:
        return {"learning_rate": base["learning_rate"] / 2}
