"""`driftscale check`: prints facts about one configuration, or about each configuration of a folder.

The facts are numbers and names, such as the number of clients, from the world that was built as a check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cli.output import OutputFormat, as_text, print_json, print_table
from experiments.running.sweep import short_keys

if TYPE_CHECKING:
    from experiments.build import World
    from experiments.config import Experiment
    from experiments.own.parts import OwnPart
    from experiments.results.reading.json_files import SweepCell
    from experiments.running.members import Member

Facts = dict[str, object]

FLEET = "fleet: "
"""What the names of the facts begin with that have a table of their own."""

MOST_LABELS, MOST_LETTERS = 50, 50  # labels shown, and letters of each

COLUMNS = ("clients", "labels", "samples in the trace", "last data step", "client updates in all")
"""The facts in the table of a folder, after its columns for the name, the arms and the seeds."""

GPU_BUILD = (
    "torch is built for {}, whose libraries take gigabytes; driftscale trains on the CPU alone. A CPU build: "
    "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu"
)


def print_check(facts: Facts, output: OutputFormat) -> None:
    """Print the facts about one configuration, one per line."""
    if output is OutputFormat.JSON:
        print_json(facts)
        return
    for title, shown in (("ok", False), ("fleet", True)):
        rows = {key: value for key, value in facts.items() if key.startswith(FLEET) == shown}
        print_table(
            [{"what": key.removeprefix(FLEET), "value": str(value)} for key, value in rows.items()], title
        )


def print_checks(
    checks: Sequence[Facts], output: OutputFormat, cells: Sequence[SweepCell | None] = ()
) -> None:
    """Print a row for each configuration of a folder or a sweep; as JSON, the list of all their facts.

    `cells` are their places in a sweep: if all are of one sweep, their values are shown for their names.
    """
    if output is OutputFormat.JSON:
        print_json(checks)
        return
    names: list[Facts] = [{"name": facts["name"]} for facts in checks]
    title = "ok"
    swept = [cell for cell in cells if cell is not None]
    if len(swept) == len(checks) and len({cell.of for cell in swept}) == 1:
        short = short_keys(swept[0].keys)
        names = [{short[key]: as_text(value) for key, value in cell.keys.items()} for cell in swept]
        title = f"{swept[0].of}: ok"
    rows = [
        {
            **name,
            **{key: str(facts[key]).count(",") + 1 for key in ("arms", "seeds")},
            **{key: facts.get(key, "") for key in COLUMNS},
        }
        for name, facts in zip(names, checks, strict=True)
    ]
    print_table(rows, title)


def check_members_of(
    members: Sequence[Member],
    note: Callable[[str], None],
    *,
    trial: bool = True,
    contracts: bool = False,
) -> list[Facts]:
    """Check each configuration; returns the facts about each, and passes warnings to `note`.

    With `trial`, own code is tried; with `contracts`, those of own parts are run, too.

    The last warning is of no configuration: that the installed torch was built for a GPU, which nothing uses.
    For the errors see `check_members`.
    """
    from executor.capability import gpu_build
    from experiments.running.folder import check_members

    warnings: list[str] = []
    facts: dict[str, Facts] = {}
    checked: list[OwnPart] = []
    tried = None if trial else ()
    for member, world in check_members(members, Path(), warnings.append, lambda _: tried):
        found = {
            **check_facts(member.experiment, world, warnings.append),
            **_own_code(member.experiment, member.arms, trial=trial),
        }
        told = {"warnings": "; ".join(warnings)} if warnings else {}
        facts[member.experiment.name] = {**found, **told}
        for warning in warnings:
            note(warning)
        warnings.clear()
        if contracts:
            from experiments.own.contracts import check_contracts

            if kept := check_contracts(member, world, checked):
                facts[member.experiment.name]["contracts"] = ", ".join(kept)
    if contracts and not checked:
        note("contracts: all parts are shipped ones, so there is no part of one's own to check")
    if (platform := gpu_build()) is not None:
        note(GPU_BUILD.format(platform))
    return [facts[member.experiment.name] for member in members]


def _own_code(experiment: Experiment, arms: Sequence[str] | None, *, trial: bool) -> Facts:
    """The facts `own code`, its parts, and `trial`, what was played of it; none without such parts."""
    from experiments.own.parts import own_parts
    from experiments.own.trial import tried_arms

    names = arms or [arm.name for arm in experiment.arm]
    own = dict.fromkeys(f"{part.what} {part.name}" for part in own_parts(experiment, names))
    tried = ", ".join(tried_arms(experiment, names))
    played = f"two rounds of each of {tried}, before any run" if trial else "left out"
    return {"own code": ", ".join(own), "trial": played} if own else {}


def check_facts(experiment: Experiment, world: World, note: Callable[[str], None] = lambda _: None) -> Facts:
    """Facts about a configuration by name, in the order in which they are printed.

    `world` is the world of its first seed; `note` receives warnings.
    """
    from experiments.cli.configurations.fleet_facts import fleet_facts

    return {
        "name": experiment.name,
        "arms": ", ".join(arm.name for arm in experiment.arm),
        "seeds": ", ".join(map(str, experiment.seeds)),
        "clients": world.trace.num_clients,
        "labels": world.trace.num_labels,
        **_labels_seen(world.trace.label_names),
        "samples in the trace": world.trace.table.num_samples,
        "last data step": world.trace.last_step,
        "device profile": world.profile.name,
        "model factor": _model_factors(experiment, world),
        **_strategies(experiment, world),
        **{f"availability: {name}": count for name, count in world.availability.facts.items()},
        **_faults(experiment, world),
        **_updates(experiment),
        **fleet_facts(experiment, world, note),
    }


def _strategies(experiment: Experiment, world: World) -> Facts:
    """The fact `training strategy`: that of each arm whose model does not say which suits it, and why."""
    from experiments.build import build_executor

    executors = {arm.name: build_executor(experiment, arm, world) for arm in experiment.arm}
    chosen = {name: f"{of.strategy}: {of.reason}" for name, of in executors.items() if of.reason}
    if len(set(chosen.values())) == 1 and len(chosen) == len(executors):
        return {"training strategy": next(iter(chosen.values()))}
    return {"training strategy": "; ".join(map(": ".join, chosen.items()))} if chosen else {}


def _updates(experiment: Experiment) -> Facts:
    """The fact `client updates in all`; where rounds follow virtual time it is not known."""
    from experiments.build import build_parts

    if experiment.round.seconds_per_round is not None:
        return {"virtual seconds of a run": experiment.round.rounds * experiment.round.seconds_per_round}
    participants = [build_parts(experiment, arm).pacing.cohort.participants for arm in experiment.arm]
    return {"client updates in all": sum(participants) * experiment.round.rounds * len(experiment.seeds)}


def _labels_seen(names: Sequence[str]) -> Facts:
    """The fact `labels seen`: the names of classes, in the order of classes; no fact if there are no names.

    Only the labels of a replayed table have names. At most `MOST_LABELS` are shown, as Python literals, so
    that a terminal obeys none of their control characters.
    """
    if not names:
        return {}
    shown = [repr(name if len(name) <= MOST_LETTERS else f"{name[:MOST_LETTERS]}…") for name in names]
    others = [f"and {len(names) - MOST_LABELS} more"] if len(names) > MOST_LABELS else []
    return {"labels seen": ", ".join([*shown[:MOST_LABELS], *others])}


def _faults(experiment: Experiment, world: World) -> Facts:
    """The configured probabilities of faults, and the number of byzantine clients of each kind."""
    from coordinator.population import SCALED

    settings = experiment.faults
    corrupt = f"{settings.corrupt:g} ({settings.corruption})" if settings.corrupt else ""
    chances = {"crash": settings.crash, "corrupt": corrupt, "loss": settings.loss}
    byzantine: dict[str, list[str]] = {}
    for group in world.faults.byzantine:
        scale = f" (scale {group.scale:g})" if group.kind in SCALED else ""
        byzantine.setdefault(group.kind, []).append(f"{len(group.clients)} clients{scale}")
    return {
        **{f"faults: {name}": chance for name, chance in chances.items() if chance},
        **{f"faults: {kind}": ", ".join(groups) for kind, groups in byzantine.items()},
    }


def _model_factors(experiment: Experiment, world: World) -> float | str:
    """The model factor if it is the same for all arms; otherwise text with the factor of each arm.

    The model factor is how many times slower a sample is than with the profile's reference model.
    """
    from experiments.build import model_factors

    factors = model_factors(experiment, [arm.name for arm in experiment.arm], world)
    if len(set(factors.values())) == 1:
        return next(iter(factors.values()))
    return ", ".join(f"{arm} {factor:.4g}" for arm, factor in factors.items())
