"""Watches a part under test: records its client requests and triggers, and refuses invalid ones."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from coordinator.checks import check_trigger
from coordinator.view import ClaimedBy, Part, Samples, ScoreResponse, View
from emulator.arrays import Floats32, Ints
from emulator.messages import AnyTrigger, Metric, Updates

METRICS: frozenset[Metric] = frozenset(get_args(Metric))

Request = tuple[Ints, Ints | Floats32, str, str, int | None]


class Watch:
    """Records the client requests (`requests`) and triggers (`logged`) of `part`."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.requests: list[Request] = []
        self.logged: list[AnyTrigger] = []

    def over(self, view: View) -> View:
        """`view`, with the part's client requests and triggers recorded.

        Calls raise AssertionError for a request or trigger that no run could serve, and for true concepts
        that the part does not declare to read.
        """
        return replace(
            view,
            truth=lambda: self._concepts(view),
            onset_truth=lambda: self._newest_onset(view),
            score=lambda *request, **more: self._score(view, *request, **more),
            train=lambda *request: self._train(view, *request),
            log_trigger=lambda trigger: self._log(view, trigger),
        )

    def _concepts(self, view: View) -> Ints | None:
        self._refuse_unless_oracle("concepts")
        return view.truth()

    def _newest_onset(self, view: View) -> Ints | None:
        self._refuse_unless_oracle("onsets")
        return view.onset_truth()

    def _refuse_unless_oracle(self, truth: str) -> None:
        part = self.part
        assert part.oracle, f"{part.name} reads the true {truth}, but does not declare `oracle = True`"

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
        for name, ids, count in (("clients", clients, view.num_clients), ("models", models, num_models)):
            assert ids.dtype == np.int64, f"a request: {name} are {ids.dtype}, not int64"
            assert ((ids >= 0) & (ids < count)).all(), f"a request: {name} {ids} must be 0 to {count - 1}"
        assert (np.diff(clients) > 0).all(), f"a request: clients {clients} are not ascending and distinct"
        assert len(models), "a request without models"
        assert metrics, "a request without metrics"
        assert metrics <= METRICS, f"a request: metrics {sorted(metrics)}; choices: {sorted(METRICS)}"
        assert limit is None or limit >= 1, f"a request: limit = {limit} samples; must be at least 1"
        if isinstance(samples, ClaimedBy):
            model = samples.model
            assert 0 <= model < num_models, (
                f"a request: samples claimed for model {model}; must be 0 to {num_models - 1}"
            )
        else:
            assert samples in ("arrived", "held"), (
                f"a request: samples = {samples!r}; choices: 'arrived', 'held', ClaimedBy"
            )
        self.requests.append((clients.copy(), models.copy(), repr(samples), repr(sorted(metrics)), limit))
        return view.score(clients, models, samples, metrics, limit)

    def _train(self, view: View, clients: Ints, start: Floats32, steps: int) -> Updates:
        """Check the arguments by the rules of `coordinator.view.TrainRequest`, and send the request."""
        assert clients.dtype == np.int64, f"a request: clients are {clients.dtype}, not int64"
        assert ((clients >= 0) & (clients < view.num_clients)).all(), (
            f"a request: clients {clients} must be 0 to {view.num_clients - 1}"
        )
        assert (np.diff(clients) > 0).all(), f"a request: clients {clients} are not ascending and distinct"
        expected = view.initial(0)
        assert (start.dtype, start.shape) == (expected.dtype, expected.shape), (
            f"a request: start is {start.dtype} {start.shape}; must be {expected.dtype} {expected.shape}"
        )
        assert np.isfinite(start).all(), "a request: start must be finite"
        assert isinstance(steps, int), f"a request: steps = {steps!r}; must be an int"
        assert steps >= 1, f"a request: steps = {steps}; must be at least 1"
        self.requests.append((clients.copy(), start.copy(), "train", "", steps))
        return view.train(clients, start, steps)

    def _log(self, view: View, trigger: AnyTrigger) -> None:
        """Check that the log can hold the trigger, and log it."""
        check_trigger(trigger)
        self.logged.append(trigger)
        view.log_trigger(trigger)
