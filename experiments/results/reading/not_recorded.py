"""The error that results are asked for which runs did not record, and the options that record them."""

from __future__ import annotations

from emulator.errors import InputError

LOG_VISITS = "round.log_visits"
LOG_CLIENTS = "round.log_client_accuracy"


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
