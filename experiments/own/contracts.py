"""The contracts of the own parts of a configuration, which `driftscale check --contracts` runs."""

from __future__ import annotations

from functools import partial

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from emulator.errors import EmulatorError, InputError
from emulator.own.code import place_of
from experiments import contracts
from experiments.build import World
from experiments.own.parts import OwnPart, own_parts
from experiments.running.members import Member

ROUNDS, SAMPLES = 20, 5
"""Rounds that the trace of an own source covers, at most; samples of each cell that a concept set draws."""

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
    own = own_parts(member.experiment, member.arms or [arm.name for arm in member.experiment.arm])
    for part in own:
        for contract in [] if part in checked else _contracts_of(part, world, member):
            try:
                contract()
            except Exception as error:
                raise InputError(
                    f"{member.where}: {_named(part)} breaks {contract.func.__name__}: {_breach(error)}"
                ) from error
        checked.append(part)
    return list(dict.fromkeys(map(_named, own)))


def _contracts_of(part: OwnPart, world: World, member: Member) -> list[partial[None]]:
    """The contracts of a part; what depends on data or devices is checked with those of `world`."""
    if part.chosen is None:
        return [partial(contracts.check_device_profile, world.profile)]
    make, trace = partial(part.code, part.chosen.settings), world.trace
    fielding = partial(FieldingSettings, trigger=part.chosen)
    name, *given = {
        "availability": ("availability", world.availability, min(CLIENTS, trace.num_clients), TIMES_S),
        "concept set": ("concepts", make, SAMPLES, member.locate),
        "local rule": ("rule", make),
        "model": ("model", make, trace.sample_shape, trace.num_labels),
        "trace source": ("trace_source", make, min(ROUNDS, member.experiment.round.rounds), member.locate),
        "trigger": ("clusterer", lambda: Fielding(fielding())),
    }.get(part.what, (part.what, make))
    of_kind = partial(getattr(contracts, f"check_{name}"), *given)
    return [partial(contracts.check_part, part.code, part.chosen.settings), of_kind]


def _named(part: OwnPart) -> str:
    """The part, with those of its settings that are not the defaults."""
    given = part.chosen.settings.model_dump(exclude_defaults=True) if part.chosen else {}
    settings = ", ".join(f"{key} = {value!r}" for key, value in given.items())
    return f"{part.what} {part.name}" + (f" ({settings})" if settings else "")


def _breach(error: Exception) -> str:
    """What is wrong: the sentence of the contract or the error, and the last line of own code, if any."""
    text = " ".join(str(error).split())
    is_sentence = text and isinstance(error, EmulatorError | AssertionError)
    return f"{text if is_sentence else f'{type(error).__name__}: {text}'}{place_of(error)}"
