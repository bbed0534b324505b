"""MLflow: one run for each (arm, seed), in the MLflow experiment that has the name of ours.

The step of a metric is its round, its timestamp the virtual time at which the round closed, in milliseconds
(MLflow takes 0 for "now", so 1 is the least). A run is found again by its tags, and replaced.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from emulator.storage.checkpoints import make_folder
from emulator.storage.own_files import path_below
from experiments.tracking.base import Point, RunFacts

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Environment variable with the address of a server, or of another store than the local one."""

FOR_LOCAL_STORE = {"MLFLOW_ALLOW_FILE_STORE": "true"}
"""MLflow 3 refuses folders as a store unless asked; a database would need its drivers, and one writer."""

PRIVACY = {"MLFLOW_DISABLE_TELEMETRY": "true"}
"""Keeps MLflow from reporting its use to its makers, unless the variable is set already."""

STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}

RUN_TAG = "driftscale.run"
"""The tag by which a run is found again: a hash of its run directory's path, its arm and its seed."""

MOST_PARAMS = 100
MOST_METRICS = 1000
"""MLflow's limits of one request."""

MOST_VALUE_LETTERS = 6000
"""MLflow's limit of the value of a parameter."""

SEND_EVERY_S = 1.0
"""Minimum wall seconds between two requests while rounds are done."""

LEAST_MS = 1


class MlflowTracker:
    """Logs to the server or store in `MLFLOW_TRACKING_URI`; without it, to a folder.

    Args:
        root: A trusted folder, such as a run directory.
        names: Names of the folders from there to the local store.
        clock: Wall time in seconds.
    """

    def __init__(self, root: Path, *names: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._names, self._clock = root, names, clock
        self._client: Any = None
        self._run_id = ""
        self._waiting: list[Any] = []
        self._sent_s = 0.0
        self._last_ms = LEAST_MS

    def begun(self, facts: RunFacts) -> None:
        for name, value in PRIVACY.items():
            os.environ.setdefault(name, value)
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        address = os.environ.get(URI_VARIABLE) or self._local_store().as_uri()
        self._client = MlflowClient(tracking_uri=address)
        experiment_id = self._experiment_id(facts.experiment)
        identity = run_identity(facts)
        same = f"tags.`{RUN_TAG}` = '{identity}'"
        for run in self._client.search_runs([experiment_id], filter_string=same):
            self._client.delete_run(run.info.run_id)
        tags = {
            RUN_TAG: identity,
            "driftscale.version": facts.version,
            "driftscale.arm": facts.arm,
            "driftscale.seed": str(facts.seed),
            "driftscale.directory": str(facts.directory),
        }
        run = self._client.create_run(
            experiment_id, start_time=LEAST_MS, tags=tags, run_name=f"{facts.arm}, seed {facts.seed}"
        )
        self._run_id = run.info.run_id
        params = [Param(key, _cut(str(value))) for key, value in facts.settings.items()]
        for first in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(self._run_id, params=params[first : first + MOST_PARAMS])
        self._sent_s = self._clock()

    def round_done(self, point: Point) -> None:
        self._last_ms = max(LEAST_MS, round(point.closed_s * 1000))
        self._add(point.figures, point.round)
        if len(self._waiting) >= MOST_METRICS or self._clock() - self._sent_s >= SEND_EVERY_S:
            self._send()

    def ended(self, status: str, summary: Mapping[str, float]) -> None:
        self._add({f"summary_{name}": value for name, value in summary.items()}, 0)
        self._send()
        self._client.set_terminated(self._run_id, STATUS[status], end_time=self._last_ms)

    def _local_store(self) -> Path:
        for name, value in FOR_LOCAL_STORE.items():
            os.environ.setdefault(name, value)
        store = path_below(self._root, *self._names, is_folder=True).absolute()
        make_folder(store)
        return store

    def _experiment_id(self, name: str) -> str:
        """The MLflow experiment of that name, created if there is none.

        Workers may create it at the same time: a server refuses all but the first, a folder does not.
        """
        from mlflow.exceptions import MlflowException

        with nullcontext() if os.environ.get(URI_VARIABLE) else _store_locked(self._local_store()):
            experiment = self._client.get_experiment_by_name(name)
            if experiment is None:
                try:
                    return str(self._client.create_experiment(name))
                except MlflowException:
                    experiment = self._client.get_experiment_by_name(name)
                    if experiment is None:
                        raise
        return str(experiment.experiment_id)

    def _add(self, figures: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        self._waiting += [Metric(name, value, self._last_ms, step) for name, value in figures.items()]

    def _send(self) -> None:
        for first in range(0, len(self._waiting), MOST_METRICS):
            self._client.log_batch(self._run_id, metrics=self._waiting[first : first + MOST_METRICS])
        self._waiting, self._sent_s = [], self._clock()


def address_in_force(folder: Path) -> str:
    """Where runs are logged: the host of the address in `MLFLOW_TRACKING_URI`, or else `folder`.

    Without a name and a password, which an address may have.
    """
    given = os.environ.get(URI_VARIABLE)
    if not given:
        return str(folder)
    url = urlsplit(given)
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.hostname}{port}" if url.hostname else given


def run_identity(facts: RunFacts) -> str:
    """A hash of the path of the run directory, the arm and the seed: the same for each export of a run."""
    return hashlib.sha256(f"{facts.directory}\0{facts.arm}\0{facts.seed}".encode()).hexdigest()


def _store_locked(store: Path) -> Any:
    """Context that holds the lock of a local store; filelock's Timeout after half a minute."""
    from emulator.storage.locks import Lock

    return Lock(path_below(store, ".driftscale.lock"), timeout=30.0)


def _cut(text: str) -> str:
    """`text`, of which a value longer than MLflow takes ends in its true length.

    >>> _cut("x" * 7000)[-17:]
    'xx (7000 letters)'
    """
    if len(text) <= MOST_VALUE_LETTERS:
        return text
    ending = f" ({len(text)} letters)"
    return text[: MOST_VALUE_LETTERS - len(ending)] + ending
