"""Layers that stay with the client: FedPer, LG-FedAvg and FedRep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from emulator.errors import ConfigurationError
from emulator.messages import StateSpec, StepForm
from emulator.ports import Segment
from executor.rules.base import LocalRule, LocalRun
from executor.rules.settings import PersonalLayersSettings

OWN = "personal_layers.own"


class PersonalLayers(LocalRule):
    """Some tensors of the model stay with the client: they are trained there, and sent neither way.

    `keep` names them. A layer is the tensors whose names differ only after the last dot, such as its weight
    and bias. Tensors that stay start from the first model that a client receives, and stay with it for the
    run, whatever its data and its model; a rule such as FedProx pulls them towards what they were as the
    visit began. With `alternate`, a visit first trains the head with the body at rest, for the share
    `head_steps` of its steps, rounded up, then the body with the head at rest (FedRep).

    Source: Arivazhagan et al., "Federated Learning with Personalization Layers", 2019; Liang et al., "Think
    Locally, Act Globally: Federated Learning with Local and Global Representations", 2020; Collins et al.,
    "Exploiting Shared Representations for Personalized Federated Learning", ICML 2021, algorithm 1.

    Of two layers of one number each, the client keeps the last, at 7; it received 3:

    >>> rule = PersonalLayers(PersonalLayersSettings(keep="head"))
    >>> layout = {"0.weight": Segment(0, 1, (1,)), "1.weight": Segment(1, 2, (1,))}
    >>> rule.check(layout, rule)
    >>> received = torch.tensor([[2.0, 3.0]])
    >>> rule.personal(received, {OWN: torch.tensor([[0.0, 7.0]])}).tolist()
    [[2.0, 7.0]]
    """

    Settings = PersonalLayersSettings
    settings: PersonalLayersSettings

    def __init__(self, settings: PersonalLayersSettings) -> None:
        super().__init__(settings)
        self._kept: Tensor = torch.zeros(0, dtype=torch.bool)  # (P,) of a checked layout

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {OWN: StateSpec("parameters", until="run", start="received")}

    @property
    def form(self) -> StepForm | None:
        return None if self.settings.alternate else StepForm()  # by turns, no tensor takes all steps

    def check(self, layout: Mapping[str, Segment], optimiser: LocalRule) -> None:
        kept = self.unsent(layout)
        tensors = [segment for segment in layout.values() if segment.trainable]
        trained = [segment for segment in tensors if segment in kept]
        if len(trained) in (0, len(tensors)):
            how_many = "all trained tensors" if trained else "no trained tensor"
            raise ConfigurationError(
                f"solver: personal_layers.keep = {self.settings.keep!r} names {how_many} of the model; must "
                f"leave some to send, and keep some; tensors: {', '.join(layout)}"
            )
        self._kept = torch.zeros(max(segment.last for segment in layout.values()), dtype=torch.bool)
        for segment in kept:
            self._kept[segment.first : segment.last] = True

    @property
    def plans_steps(self) -> bool:
        return self.settings.alternate

    def unsent(self, layout: Mapping[str, Segment]) -> Sequence[Segment]:
        keep = self.settings.keep
        head = _last_layer([name for name, segment in layout.items() if segment.trainable])
        if isinstance(keep, str):
            in_head = {name for name in layout if _layer(name) == head}
            names = in_head if keep == "head" else {name for name in layout if name not in in_head}
            names = {name for name in names if layout[name].trainable}
        else:
            names = set(keep)
            unknown = sorted(names - layout.keys())
            if unknown:
                raise ConfigurationError(
                    f"solver: personal_layers.keep names {unknown[0]!r}, which the model has not; tensors: "
                    f"{', '.join(layout)}"
                )
        return [segment for name, segment in layout.items() if name in names]

    def begin(self, run: LocalRun) -> None:
        own = run.state[OWN][:, self._kept]
        run.present[:, self._kept] = own
        run.received[:, self._kept] = own  # what other rules pull towards, and an update is measured from

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        if self.settings.alternate:
            head = self._kept if self.settings.keep == "head" else ~self._kept
            # Without rounding, 0.14 x 50 would be more than 7.
            share = torch.round(run.steps.double() * self.settings.head_steps, decimals=9)
            of_head = run.step < torch.ceil(share)  # (n, 1)
            run.still = torch.where(of_head, ~head, head)
        return gradient

    def finish(self, run: LocalRun) -> None:
        took, kept = run.steps[:, 0] > 0, self._kept
        own = run.state[OWN]
        own[:, kept] = torch.where(took[:, None], run.present[:, kept], own[:, kept])
        run.present[:, kept] = run.received[:, kept]

    def personal(self, received: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        return torch.where(self._kept, state[OWN], received)


def _layer(name: str) -> str:
    """The layer of a tensor: its name up to the last dot."""
    return name.rpartition(".")[0]


def _last_layer(names: Sequence[str]) -> str:
    """The layer of the last of some tensors; empty without any."""
    return _layer(names[-1]) if names else ""
