"""Hearing the clients: which of them check new data and report as a round is opened, and what that costs."""

from coordinator.federation.hearing.client_data import ClientData, Reference
from coordinator.federation.hearing.hearing import Heard, Hearing
from coordinator.federation.hearing.reports import Reports

__all__ = ["ClientData", "Heard", "Hearing", "Reference", "Reports"]
