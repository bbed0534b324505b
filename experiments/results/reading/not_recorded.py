"""The error that results are asked for which runs did not record, and the options that record them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.errors import InputError

LOG_VISITS = "round.log_visits"
LOG_CLIENTS = "round.log_client_accuracy"
LOG_MODELS = "round.log_model_accuracy"
KEEP_MODELS = "output.models"


class NotRecordedError(InputError):
    """Results that runs did not record; the message names the option that records them."""

    def __init__(self, where: str, what: str, option: str) -> None:
        """Compose the message: `where` the runs are, `what` they lack, and the option of a configuration."""
        super().__init__(
            f"{where}: its runs recorded no {what}; with {option} = true, runs record them (driftscale run "
            f"… --set {option}=true, into a new directory)"
        )


class NoDetectionError(NotRecordedError):
    """Results of detectors are asked for, and the configuration has no table `[detection]`."""

    def __init__(self, where: str) -> None:
        """Compose the message: `where` the runs are."""
        InputError.__init__(
            self,
            f"{where}: its runs recorded no decisions of detectors; with a table [detection] in their "
            "configuration, runs record them (driftscale run …, into a new directory)",
        )


class NoModelAccuracyError(NotRecordedError):
    """The accuracy of models by concept is asked for, and the runs did not record it."""

    def __init__(self, where: str) -> None:
        """Compose the message: `where` the runs are."""
        super().__init__(where, "accuracies of models by concept", LOG_MODELS)


def refuse_without_model_accuracy(experiment: Mapping[str, Any], path: Path) -> None:
    """NoModelAccuracyError unless the runs of a recorded configuration log the accuracy of models."""
    if not experiment.get("round", {}).get("log_model_accuracy", False):
        raise NoModelAccuracyError(str(path))
