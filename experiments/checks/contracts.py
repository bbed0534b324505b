"""The contracts of the own parts of a configuration, which `driftscale check --contracts` runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from emulator.errors import EmulatorError, InputError
from experiments import contracts
from experiments.own_code import OwnPart, own_parts

if TYPE_CHECKING:
    from experiments.build import World
    from experiments.running.members import Member

ROUNDS = 20
"""Rounds that the trace of an own source must cover, at most."""

CLIENTS, TIMES_S = 30, [3600.0 * hour for hour in range(0, 9 * 24, 5)]
"""The clients of the world, at most, and the instants, for which an own availability is queried."""


def check_contracts(member: Member, world: World, checked: list[OwnPart]) -> list[str]:
    """The own parts of a configuration, whose contracts hold.

    Args:
        member: The configuration.
        world: The world of its first seed.
        checked: Parts that are known to keep their contracts; those that are checked now are added.

    Raises:
        InputError: A contract does not hold, or the part fails in it.
    """
    arms = member.arms or [arm.name for arm in member.experiment.arm]
    own = own_parts(member.experiment, arms)
    for part in own:
        if part in checked:
            continue
        for contract in _contracts_of(part, world, min(ROUNDS, member.experiment.round.rounds), member):
            try:
                contract()
            except Exception as error:
                raise InputError(
                    f"{member.where}: {_named(part)} breaks {contract.func.__name__}: {_breach(part, error)}"
                ) from error
        checked.append(part)
    return list(dict.fromkeys(map(_named, own)))


def _contracts_of(part: OwnPart, world: World, rounds: int, member: Member) -> list[partial[None]]:
    """The contracts of a part; whatever depends on data or devices is checked with those of `world`."""
    chosen = part.chosen
    if chosen is None:
        return [partial(contracts.check_device_profile, world.profile)]
    of_kind: partial[None]
    match chosen.what:
        case "availability":
            clients = min(CLIENTS, world.trace.num_clients)
            of_kind = partial(contracts.check_availability, world.availability, clients, TIMES_S)
        case "concept set":
            of_kind = partial(contracts.check_concepts, chosen.build, locate=member.locate)
        case "local rule":
            of_kind = partial(contracts.check_rule, chosen.build)
        case "model":
            shape, labels = world.trace.sample_shape, world.trace.num_labels
            of_kind = partial(contracts.check_model, chosen.build, shape, labels)
        case "trace source":
            of_kind = partial(contracts.check_trace_source, chosen.build, rounds, member.locate)
        case "trigger":
            settings = FieldingSettings(trigger=chosen)
            of_kind = partial(contracts.check_clusterer, lambda: Fielding(settings))
        case kind:
            check: Callable[..., None] = getattr(contracts, f"check_{kind}")
            of_kind = partial(check, chosen.build)
    return [partial(contracts.check_part, part.code, chosen.settings), of_kind]


def _named(part: OwnPart) -> str:
    """The part, with those of its settings that are not the defaults."""
    given = {} if part.chosen is None else part.chosen.settings.model_dump(exclude_defaults=True)
    settings = ", ".join(f"{key} = {value!r}" for key, value in given.items())
    return f"{part.what} {part.name}" + (f" ({settings})" if settings else "")


def _breach(part: OwnPart, error: Exception) -> str:
    """What is wrong, in a line: the sentence of the contract, or the error and where it was raised."""
    module = part.name.partition(":")[0]
    frames = list(walk_tb(error.__traceback__))
    own = [(frame, line) for frame, line in frames if frame.f_globals.get("__name__") == module]
    text = " ".join(str(error).split())
    if isinstance(error, EmulatorError) or (isinstance(error, AssertionError) and frames[-1] not in own):
        return text
    frame, line = (own or frames)[-1]
    return f"{type(error).__name__}: {text} ({Path(frame.f_code.co_filename).name}, line {line})"
