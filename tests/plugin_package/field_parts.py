"""Parts of a third party, in a package of their own."""

from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from coordinator.adaptations import Adaptation, ClientView, Served
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.pacing import CohortSize, Pacing
from coordinator.triggers import Moved, ReclusteringTrigger
from coordinator.view import View
from device_profiles import Fleet
from emulator.arrays import Bools, Floats, Ints
from emulator.messages import NamedNumbers
from emulator.numbers import Count, Duration, PositiveFactor
from emulator.plugins import NoSettings, Settings
from traces.draw import StreamSettings, draw_trace, num_windows
from traces.images import ImageSet
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace


class EvenAndOdd(Clusterer):
    """Two models: one for clients of even ids, one for those of odd ids."""

    Settings = NoSettings

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is not None:
            return None
        return Assignment.fresh(np.arange(view.num_clients) % 2, 2, view.initial(0))


class HeldOnly(Adaptation):
    """A client never predicts a label of which it holds no training sample."""

    Settings = NoSettings

    def adapt(self, view: ClientView) -> Served:
        unheld = np.where(view.label_counts() > 0, 0.0, -30.0)  # (n, L)
        offsets = np.repeat(unheld[:, None], view.plan.models.shape[1], axis=1)
        return Served(view.models, replace(view.plan, offsets=offsets))


class SpreadSettings(Settings):
    limit: PositiveFactor = Field(
        0.5, description="mean distance of a client from its centre at which it fires"
    )


class Spread(ReclusteringTrigger):
    """Fires when clients are far from the centres of their clusters, on average."""

    Settings = SpreadSettings
    settings: SpreadSettings

    def evaluate(self, moved: Moved) -> NamedNumbers:
        apart = np.abs(moved.reports - moved.centers[moved.members]).sum(axis=1)
        clusters = range(len(moved.centers))
        sizes = [int((moved.members == cluster).sum()) for cluster in clusters]
        farthest = [float(apart[moved.members == cluster].max(initial=0.0)) for cluster in clusters]
        spread = float(apart.mean())
        numbers = {"spread": spread, "limit": self.settings.limit, "farthest": farthest, "sizes": sizes}
        return NamedNumbers(numbers, len(clusters), spread > self.settings.limit)


class SemiSyncSettings(Settings):
    wait_s: Duration = Field(
        10.0, description="virtual seconds after which one client that is back is enough"
    )


class SemiSync(Pacing):
    """Waits for half of its participants, but only for some time, and abandons the others."""

    Settings = SemiSyncSettings

    def __init__(self, settings: SemiSyncSettings, cohort: CohortSize) -> None:
        super().__init__(settings, cohort)
        self.deadline_s = settings.wait_s

    def full(self, quota: Ints, out: Ints, back: Ints, elapsed_s: Floats) -> Bools:
        enough = np.where(elapsed_s >= self.deadline_s, 1, self.cohort.participants / 2)
        nothing_out = out.sum(axis=-1, keepdims=True) == 0
        return (back.sum(axis=-1, keepdims=True) >= enough) | nothing_out

    absorbs = full

    def closes(self, absorbed: int, elapsed_s: float) -> bool:
        return True


class CloudsSettings(StreamSettings):
    clients: Count = Field(20, description="how many clients there are")


class Clouds(TraceSource):
    """Two clouds of points, a label each; clients that see more of one first see more of the other later."""

    Settings = CloudsSettings
    settings: CloudsSettings

    def build(self, context: TraceContext) -> Trace:
        labels = np.arange(400) % 2
        points = context.streams.generator("clouds").normal(labels[:, None], 0.3, size=(400, 2))
        images = ImageSet(
            points.astype(np.float32), 1.0, labels, 2, train=np.arange(300), test=np.arange(300, 400)
        )
        second = np.linspace(0.1, 0.9, self.settings.clients)
        shares = np.stack([1 - second, second], axis=1)  # (clients, labels)
        windows = num_windows(self.settings, context.rounds)
        return draw_trace(
            images,
            (shares if 2 * window < windows else shares[::-1] for window in range(windows)),
            num_clients=self.settings.clients,
            num_windows=windows,
            settings=self.settings,
            streams=context.streams,
            scratch=context.scratch,
        )


@dataclass(frozen=True)
class TwoSpeeds:
    """Half of the devices compute ten times as slowly as the others."""

    name: str = "two_speeds"
    reference_model: str | None = None
    reference_flops: float | None = None
    source: str = "made up"

    def draw(self, num_clients: int, generator: np.random.Generator) -> Fleet:
        slow = generator.permutation(num_clients) % 2 == 1
        bytes_per_s = np.full(num_clients, 1e6)
        return Fleet(np.where(slow, 0.1, 0.01), bytes_per_s, bytes_per_s, np.full(num_clients, 0.02))
