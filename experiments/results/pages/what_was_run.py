"""The report's facts about its configuration, and about configured runs that are not in its figures."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from shlex import join
from typing import Any

from experiments.results.reading.header_truth import clients_of, known_onsets, onsets_in_words
from experiments.results.reading.json_files import Command, Manifest
from experiments.results.reading.recorded import written
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.horizon import seconds_per_round

LEAD = (
    ("trace", "source", "trace"),
    ("trace", "clients", "clients"),
    ("devices", "profile", "devices"),
    ("devices", "availability", "availability"),
    ("training", "model", "model"),
    ("round", "rounds", "rounds"),
    ("round", "participants", "participants a round"),
)  # section, key and noun of the facts in the first line


def lead(experiment: Mapping[str, Any], runs: Sequence[ReportedRun]) -> str:
    """One line that states what was run; keys that the configuration does not have are left out."""
    facts, until = [], {run.until for run in runs}
    for section, key, noun in LEAD:
        value = experiment.get(section, {}).get(key)
        if value is None:
            continue
        if noun == "rounds" and len(until) == 1 and None not in until:
            facts.append(f"until {until.pop()}")
            continue
        if noun == "rounds" and seconds_per_round(experiment) is not None:
            noun = "nominal rounds"
        kind = value.get("kind", value.get("path", "?")) if isinstance(value, Mapping) else value
        facts.append(f"{value:,} {noun}" if type(value) is int else f"{kind} {noun}")
    for noun, items in (("arm", experiment["arm"]), ("seed", experiment["seeds"])):
        facts.append(f"{len(items)} {noun}{'s' if len(items) > 1 else ''}")
    return " · ".join(facts)


def settings_of_run(directory: RunDirectory) -> list[tuple[str, str]]:
    """(heading, text) of each section of the configuration, of the arms, and of versions and commands."""
    experiment, manifest = directory.experiment(), directory.manifest() or Manifest()
    experiment["report"].pop("published", None)  # shown in a table of its own
    facts = [
        (key, _settings(value) if isinstance(value, Mapping) else written(value))
        for key, value in experiment.items()
        if key not in ("name", "arm")
    ]
    facts += _arm_parts(experiment)
    if manifest.versions:
        facts.append(("versions", _settings(manifest.versions)))
        facts += [("later versions", _settings(later)) for later in manifest.later_versions]
    headings = ("command", *["later command"] * (len(manifest.commands) - 1))
    facts += zip(headings, map(_command, manifest.commands), strict=False)
    return facts


def drift_of_runs(runs: Sequence[ReportedRun]) -> list[tuple[str, str]]:
    """(heading, text) of the onsets of each seed, by the logs; empty if they tell none.

    Seeds of which the text is the same are named together.
    """
    seeds: dict[str, list[int]] = {}
    for seed, header in {run.seed: run.header for run in runs}.items():
        known, num_clients = known_onsets(header), clients_of(header)
        if known is not None and num_clients is not None:
            seeds.setdefault(onsets_in_words(known, num_clients), []).append(seed)
    return [(f"drift, {_named(of_text)}", text) for text, of_text in seeds.items()]


def hashes_of_inputs(directory: RunDirectory) -> list[tuple[str, str]]:
    """(input, SHA-256) of each file that was read, and of each part of the world of each seed.

    Empty if the directory has no manifest.
    """
    manifest = directory.manifest() or Manifest()
    files = [(path, f"{file.sha256} ({file.size:,} bytes)") for path, file in manifest.files.items()]
    for seed, parts in manifest.sha256.items():
        files += [(f"seed {seed}, {part}", digest) for part, digest in parts.items()]
    return files


def missing_runs(directory: RunDirectory, counted: Container[tuple[str, int]]) -> list[str]:
    """Lines about runs that are not in `counted`: one for each arm and reason, with the seeds.

    For example "driftsurf: seeds 0, 1 not finished". The last line has the arms that were not asked for.
    """
    by_reason: dict[tuple[str, str], list[int]] = {}
    for arm, seed in directory.asked_pairs():
        if (arm, seed) not in counted:
            by_reason.setdefault((arm, _reason(directory, arm, seed)), []).append(seed)
    lines = [f"{arm}: {_named(missing)} {reason}" for (arm, reason), missing in by_reason.items()]
    if left_out := directory.left_out():
        lines.append(f"not asked for: {', '.join(left_out)}")
    return lines


def _named(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _reason(directory: RunDirectory, arm: str, seed: int) -> str:
    if directory.is_done(arm, seed):
        return "finished, but the reference arm did not finish this seed"
    failure = directory.failure(arm, seed)
    return "not finished" if failure is None else f"failed: {failure}"


def _arm_parts(experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(heading, text) of the parts that all arms share, then of the other parts of each arm.

    Of an arm's training, only the settings that differ from `[training]` are shown.
    """
    arms = [_without_shared_training(arm, experiment.get("training", {})) for arm in experiment["arm"]]
    shared = {key: value for key, value in arms[0].items() if all(arm.get(key) == value for arm in arms)}
    rows = [("all arms", _settings(shared))] if shared else []
    for arm in arms:
        parts = {key: value for key, value in arm.items() if key not in ("name", *shared)}
        rows.append((f"arm {arm['name']}", _settings(parts) or "no settings of its own"))
    return rows


def _without_shared_training(arm: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    training = {key: value for key, value in arm.get("training", {}).items() if shared.get(key) != value}
    rest = {key: value for key, value in arm.items() if key != "training"}
    return {**rest, "training": training} if training else rest


def _settings(table: Mapping[str, Any]) -> str:
    return " · ".join(f"{key} {written(value)}" for key, value in table.items())


def _command(command: Command) -> str:
    """A command as a shell takes it, when it was started and, if known, the git commit."""
    commit = "" if command.git_commit is None else f" · git commit {command.git_commit}"
    return f"{join(command.arguments)} · {command.started}{commit}"
