"""Watches a part under test: records its client requests and triggers, and refuses invalid ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np

from coordinator.view import ClaimedBy, Part, Samples, ScoreResponse, View
from emulator.arrays import Ints
from emulator.messages import Metric, Trigger

METRICS: frozenset[Metric] = frozenset(get_args(Metric))

Request = tuple[Ints, Ints, str, str, int | None]


class Watch:
    """Records the client requests (`requests`) and triggers (`logged`) of `part`."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.requests: list[Request] = []
        self.logged: list[Trigger] = []

    def over(self, view: View) -> View:
        """`view` with its calls recorded and checked; AssertionError for one that no run could serve."""
        return replace(
            view,
            truth=lambda: self._truth(view),
            score=lambda *request, **more: self._score(view, *request, **more),
            log_trigger=lambda trigger: self._log(view, trigger),
        )

    def _truth(self, view: View) -> Ints | None:
        part = self.part
        assert part.oracle, f"{part.name} looks at the true concepts, and does not declare `oracle = True`"
        return view.truth()

    def _score(
        self,
        view: View,
        clients: Ints,
        models: Ints,
        samples: Samples,
        metrics: frozenset[Metric] = frozenset({"correct"}),
        limit: int | None = None,
    ) -> ScoreResponse:
        """Check the arguments by the rules of `coordinator.view.ScoreRequest`, and send the request."""
        num_models = len(view.model_ids)
        for name, ids, most in (("clients", clients, view.num_clients), ("models", models, num_models)):
            assert ids.dtype == np.int64, f"a request names {name} by {ids.dtype} numbers, not int64"
            assert ((ids >= 0) & (ids < most)).all(), f"a request to {name} {ids}, and there are {most}"
        assert (np.diff(clients) > 0).all(), f"a request to clients {clients}: not ascending and distinct"
        assert len(models), "a request about no model"
        assert metrics, "a request that asks for no metric"
        assert metrics <= METRICS, f"a request for {sorted(metrics)}; there are {sorted(METRICS)}"
        assert limit is None or limit >= 1, f"a request about at most {limit} samples"
        if isinstance(samples, ClaimedBy):
            model = samples.model
            assert 0 <= model < num_models, (
                f"a request about samples of model {model}, and there are {num_models}"
            )
        else:
            assert samples == "arrived", f"a request about samples {samples!r}"
        self.requests.append((clients.copy(), models.copy(), repr(samples), repr(sorted(metrics)), limit))
        return view.score(clients, models, samples, metrics, limit)

    def _log(self, view: View, trigger: Trigger) -> None:
        """Check that the log can hold the trigger, and log it."""
        kinds = type(trigger.shift), type(trigger.clusters), type(trigger.fired)
        assert kinds == (float, int, bool), f"{trigger}: not a float, an int and a bool of Python's"
        for number in (trigger.shift, trigger.mean_distance, trigger.threshold):
            assert number is None or math.isfinite(number), f"{trigger}: its numbers must be finite"
        self.logged.append(trigger)
        view.log_trigger(trigger)
