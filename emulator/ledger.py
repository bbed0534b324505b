"""Bytes transferred: training traffic and control traffic, counted separately."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.arrays import Floats
from emulator.storage.stateful import Stateful


@dataclass
class Ledger(Stateful):
    """Totals of traffic since the start of the run.

    Control traffic is what reports and client requests transfer, both ways together. `models_sent` counts
    models transferred either way, for training and for scoring, without retransmissions; a model of which
    only a part was transferred before its visit ended counts as that fraction.
    """

    state_fields = ("download_bytes", "upload_bytes", "control_bytes", "models_sent")

    download_bytes: float = 0.0
    upload_bytes: float = 0.0
    control_bytes: float = 0.0
    models_sent: float = 0.0

    def charge_training(self, download_bytes: Floats, upload_bytes: Floats, num_models: float = 0) -> None:
        self.download_bytes += float(download_bytes.sum())
        self.upload_bytes += float(upload_bytes.sum())
        self.models_sent += num_models

    def charge_control(self, download_bytes: Floats, upload_bytes: Floats, num_models: float = 0) -> None:
        self.control_bytes += float(download_bytes.sum()) + float(upload_bytes.sum())
        self.models_sent += num_models
