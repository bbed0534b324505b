"""In which ways clients read their samples as they train and score: as the adaptation chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from emulator.arrays import NO_IDS, Floats, Floats32, Ints
from emulator.messages import InferencePlan, Metric, SampleRanges, Scores, Work
from emulator.ports import Executor, SampleStream
from traces.ways import Ways

if TYPE_CHECKING:
    from coordinator.adaptations import Served
    from coordinator.federation.evaluation.adapting import Adapting


class Reading:
    """Shifts samples to the ways of their clients; without an adaptation that has some, all stay plain.

    It has no state of its own: ways that are in use are those of `ways`.
    """

    def __init__(
        self,
        adapting: Adapting | None,
        ways: Ways | None,
        *,
        stream: SampleStream,
        executor: Executor,
        in_flight: Sequence[Callable[[], Ints]] = (),
    ) -> None:
        """Each of `in_flight` returns a row (ranges,) of ranges of samples that are yet to be trained on."""
        asked = adapting is not None and adapting.adaptation.hears
        self._adapting, self._ways = adapting if asked else None, ways
        self._trains = adapting is not None and adapting.adaptation.trains
        self._stream, self._executor, self._in_flight = stream, executor, in_flight

    def of_tasks(
        self,
        round_: int,
        clients: Ints,
        models: Floats32,
        start: Ints,
        samples: SampleRanges,
        *,
        sent_out: bool = True,
    ) -> tuple[SampleRanges, Work | None]:
        """The `samples` of n tasks as each reads them in its way, and what choosing and reporting costs.

        The tasks are of `clients` (n,), which start from rows `start` (n,) of `models` (M, P). A client with
        several is sent the sums of others, and reports its own, once. Unless they are `sent_out`, nobody
        reports what they read.
        """
        if self._adapting is None or len(clients) == 0:
            return samples, None
        adaptation, plan = self._adapting.adaptation, InferencePlan.alike(start[:, None])
        held = self._stream.held(clients, "train")
        view = self._adapting.view(clients, plan, held, rounds=round_, models=models)
        served = adaptation.adapt(view)
        once = np.append(True, clients[1:] != clients[:-1])  # the first task of each client
        work = Work.of(len(clients))
        if (choosing := adaptation.choosing_work(view)) is not None:
            down, up = choosing.download_bytes * once, choosing.upload_bytes * once
            work = replace(choosing, download_bytes=down, upload_bytes=up)
        if sent_out:
            first = np.flatnonzero(once)
            if len(first) < len(clients):
                view = self._adapting.view(
                    clients[first], plan.take(first), held.take(first), rounds=round_, models=models
                )
            reporting = adaptation.sent_out(view, served.take(first))
            if reporting is not None:
                work = work.plus(reporting, first)
        if self._ways is None or not self._trains:
            return samples, work
        self._ways.keep(np.concatenate([NO_IDS, *(rows() for rows in self._in_flight)]))
        return samples.shifted(self._ways.add(*_ways_of(served, 0))), work

    def score(
        self,
        round_: int,
        clients: Ints,
        models: Floats32,
        samples: SampleRanges,
        metrics: frozenset[Metric],
    ) -> tuple[Scores, Work | None]:
        """The scores of `models` (M, P) on `samples`, a row for each of `clients` (n,), and the cost of ways.

        Each client reads its samples in a way of its own for each of the models.
        """
        if self._adapting is None or self._ways is None or not self._trains or len(clients) == 0:
            return self._executor.score(models, samples, metrics), None
        adaptation, everyone = self._adapting.adaptation, np.tile(np.arange(len(models)), (len(clients), 1))
        held = self._stream.held(clients, "train")
        plan = InferencePlan.alike(everyone)
        view = self._adapting.view(clients, plan, held, rounds=round_, models=models)
        served, parts = adaptation.adapt(view), []
        for model in range(len(models)):
            with self._ways.for_now(*_ways_of(served, model)) as shift:
                parts.append(self._executor.score(models[[model]], samples.shifted(shift), metrics))
        names = [field.name for field in fields(Scores) if getattr(parts[0], field.name) is not None]
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in names[1:]
        }
        return replace(parts[0], **columns), adaptation.choosing_work(view)

    def shift_of(self, samples: SampleRanges) -> Ints:
        """(n,) what `of_tasks` has added to the table rows of n tasks; 0 for one without samples."""
        rows = np.append(samples.first, 0)[samples.offsets[:-1]]
        rows = np.where(samples.offsets[1:] > samples.offsets[:-1], rows, 0)
        return rows * 0 if self._ways is None else rows // len(self._ways) * len(self._ways)


def _ways_of(served: Served, column: int) -> tuple[Floats, Ints | None]:
    """The numbers (n, K) and the labels (n, L) of the ways of one model each."""
    outputs = served.plan.outputs
    numbers = np.zeros((len(served.plan.models), 0)) if served.ways is None else served.ways[:, column]
    return numbers, None if outputs is None else outputs[:, column]
