"""The error that results are asked for which runs did not record, and the options that record them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.errors import InputError

if TYPE_CHECKING:
    from experiments.results.wording import Words

LOG_VISITS = "round.log_visits"
LOG_CLIENTS = "round.log_client_accuracy"
LOG_MODELS = "round.log_model_accuracy"
KEEP_MODELS = "output.models"


DETECTION = "a table [detection] in their configuration"
"""What records the decisions of detectors, in place of an option."""


class NotRecordedError(InputError):
    """Results that runs did not record; the message names the option that records them."""

    def __init__(self, where: str, what: str, option: str) -> None:
        """Compose the message: `where` the runs are, `what` they lack, and the option of a configuration."""
        how, run = (option, "") if option == DETECTION else (f"{option} = true", f" --set {option}=true")
        super().__init__(
            f"{where}: its runs recorded no {what}; with {how}, runs record them (driftscale run …{run}, "
            "into a new directory)"
        )


def refuse_without_model_accuracy(experiment: Mapping[str, Any], path: Path, words: Words) -> None:
    """NotRecordedError, in these words, unless recorded runs log the accuracy of models."""
    if not experiment.get("round", {}).get("log_model_accuracy", False):
        from experiments.results.wording import told  # which a configuration does not need

        raise NotRecordedError(str(path), told(words, "accuracies of models by concept"), LOG_MODELS)
