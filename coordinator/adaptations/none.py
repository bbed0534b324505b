"""No adaptation."""

from __future__ import annotations

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.plugins import NoSettings


class NoAdaptation(Adaptation):
    """The models that serve a client predict as they are: the default.

    Source: ours.

    >>> from types import SimpleNamespace
    >>> served = NoAdaptation(NoSettings()).adapt(SimpleNamespace(models="the bank", plan="as served"))
    >>> served.models, served.plan
    ('the bank', 'as served')
    """

    Settings = NoSettings

    def adapt(self, view: ClientView) -> Served:
        return Served(view.models, view.plan)
