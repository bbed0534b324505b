"""The kinds of parts: what each is for, where a configuration names it, and how that looks in TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from emulator.errors import UnknownNameError
from emulator.plugins import Registry

ARM = '[[arm]]\nname = "mine"\n'
"""How the example of a part begins that an arm names."""


@dataclass(frozen=True)
class PartKind:
    """A kind of part.

    Attributes:
        name: Its name, as `driftscale parts` takes it.
        registry: Its parts.
        about: What a part of this kind decides.
        keys: The keys of a configuration that name one.
        example: Lines of a configuration in which `{part}` stands for a part, as a name or a table, or
            `{settings}` for its name and settings as keys of their own.
    """

    name: str
    registry: Registry[Any]
    about: str
    keys: tuple[str, ...]
    example: str

    def example_of(self, part: str, settings: Mapping[str, str]) -> str:
        """Lines of a configuration that name a part.

        Args:
            part: The name of the part.
            settings: Some of its settings, as TOML has their values.
        """
        pairs = [f"{key} = {value}" for key, value in settings.items()]
        table = f'{{ kind = "{part}", {", ".join(pairs)} }}' if pairs else f'"{part}"'
        lines = "\n".join([f'source = "{part}"', *pairs])
        return self.example.replace("{part}", table).replace("{settings}", lines)


@cache
def part_kinds() -> dict[str, PartKind]:
    """The kinds of parts by name, in the order in which `driftscale parts` lists them."""
    from coordinator.adaptations import ADAPTATIONS
    from coordinator.aggregators import AGGREGATORS
    from coordinator.clusterers import CLUSTERERS
    from coordinator.detectors import DETECTORS
    from coordinator.memories import MEMORIES
    from coordinator.pacing import PACINGS
    from coordinator.representations import REPRESENTATIONS
    from coordinator.schedules import SCHEDULES
    from coordinator.selectors import SELECTORS
    from coordinator.triggers import TRIGGERS
    from executor.models import MODELS
    from executor.objectives import OBJECTIVES
    from executor.rules import RULES
    from traces.availability import AVAILABILITIES
    from traces.concepts import CONCEPT_SETS
    from traces.drift import DRIFTS
    from traces.partitions import PARTITIONS
    from traces.sources import SOURCES

    def of_arm(name: str, registry: Registry[Any], about: str) -> PartKind:
        return PartKind(name, registry, about, (f"arm.{name}", f"parts.{name}"), f"{ARM}{name} = {{part}}\n")

    kinds = (
        of_arm("clusterer", CLUSTERERS, "Decides which models there are, and which of them a client shares."),
        PartKind(
            "representation",
            REPRESENTATIONS,
            "Measures what a client reports of its data.",
            ("arm.representation", "parts.representation", "round.client_distance"),
            f"{ARM}representation = {{part}}\n",
        ),
        PartKind(
            "trigger",
            TRIGGERS,
            "Decides when the clusterer `fielding` clusters all clients anew.",
            ("arm.clusterer.trigger",),
            f'{ARM}clusterer = {{ kind = "fielding", trigger = {{part}} }}\n',
        ),
        PartKind(
            "detector",
            DETECTORS,
            "Decides which clients drifted: who so report, or whose training changes.",
            ("arm.detectors", "parts.detectors"),
            f"{ARM}detectors = {{ drifted = {{part}} }}\n",
        ),
        of_arm("selector", SELECTORS, "Decides which candidates take part in a round."),
        of_arm("memory", MEMORIES, "Decides which samples a client trains each model on."),
        PartKind(
            "solver",
            RULES,
            "A local rule: what a local step does with the gradient. The last rule of an arm, and no other, "
            "is an optimiser (`adam`, `sgd`).",
            ("arm.solver", "parts.solver"),
            f"{ARM}solver = [{{part}}]\n",
        ),
        of_arm("aggregator", AGGREGATORS, "Makes new models of the updates of a round."),
        of_arm("pacing", PACINGS, "Decides when visits are opened and abandoned, and when a round closes."),
        of_arm("adaptation", ADAPTATIONS, "Decides how a client uses the models that serve it."),
        PartKind(
            "schedule",
            SCHEDULES,
            "Sets numbers of each task, such as its learning rate.",
            ("arm.schedules", "parts.schedules"),
            f"{ARM}schedules = [{{part}}]\n",
        ),
        PartKind(
            "model",
            MODELS,
            "The model that is trained; the trace has the shape of its samples and the number of labels.",
            ("training.model", "arm.training.model"),
            "[training]\nmodel = {part}\n",
        ),
        PartKind(
            "objective",
            OBJECTIVES,
            "What a model is trained on, and scored by: the loss of each sample, and its hits.",
            ("training.objective",),
            "[training]\nobjective = {part}\n",
        ),
        PartKind(
            "source",
            SOURCES,
            "The trace: which samples reach which client, and when.",
            ("trace.source",),
            "[trace]\n{settings}\n",
        ),
        PartKind(
            "drift",
            DRIFTS,
            "Decides how the labels of clients change over time, for the sources `digits` and `idx`.",
            ("trace.drift",),
            '[trace]\nsource = "digits"\ndrift = {part}\n',
        ),
        PartKind(
            "partition",
            PARTITIONS,
            "Divides a data set among clients, who keep their samples to the end, for the sources `digits` "
            "and `idx`, and for `driftscale traces build`.",
            ("trace.partition",),
            '[trace]\nsource = "digits"\nclients = 20\npartition = {part}\n',
        ),
        PartKind(
            "concepts",
            CONCEPT_SETS,
            "Decides how labels depend on features in each concept, for the source `concepts`.",
            ("trace.concepts",),
            '[trace]\nsource = "concepts"\npattern = ["00", "01", "11"]\nconcepts = {part}\n',
        ),
        PartKind(
            "availability",
            AVAILABILITIES,
            "Decides when clients are online.",
            ("devices.availability",),
            "[devices]\navailability = {part}\n",
        ),
    )
    return {kind.name: kind for kind in kinds}


def part_kind(name: str) -> PartKind:
    """The kind of that name; UnknownNameError with the choices if there is none."""
    kinds = part_kinds()
    if name not in kinds:
        from experiments.remedies.misreadings import remedy

        raise UnknownNameError("kind of part", name, kinds, remedy=remedy("kind of part", name))
    return kinds[name]
