"""`driftscale traces export`: checks the options, draws the trace, and writes it as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coordinator.federation.faults import Faults
from emulator.errors import InputError, naming
from emulator.seeding import RandomStreams
from experiments.cli.output import OutputFormat, print_json, say
from experiments.cli.traces.inspecting import parse_bound, parse_width
from experiments.reading import load_without_torch, parse_value
from experiments.shipped import named
from traces.exporting.parquet import export_parquet
from traces.files import read_facts
from traces.sources import TraceContext
from traces.sources.file import File, FileSettings
from traces.trace import Trace

FORMATS = ("parquet",)

MOST_STEPS = 2**16
"""Most data steps that are exported: each is looked at."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command, as they were given.

    `note` is a line that says what was taken for `path`, where two could be meant.
    """

    path: Path
    to: str | None
    out: Path | None
    overrides: Sequence[str]
    data: Sequence[Path]
    seed: int | None
    step_width: str | None
    since: str | None
    until: str | None
    rounds_per_step: int | None
    retain_rounds: str | None
    output: OutputFormat
    note: str = ""


@dataclass(frozen=True)
class Drawn:
    """A trace to be exported, the data steps of its run, and where it comes from, in a line."""

    trace: Trace
    num_steps: int
    origin: str


class Folder(File):
    """The source of a folder that is named on the command line, whose settings are options."""

    def key(self, name: str) -> str:
        return _option(name)


def export_trace(request: Request) -> None:
    """Write the table of a trace, and print what is in it.

    Raises:
        InputError: an option does not fit, the file exists, or the trace cannot be read or drawn.
    """
    out = _checked_out(request)
    if request.note:
        say(request.note, aside=True)
    drawn = _of_folder(request) if request.path.is_dir() else _of_config(request)
    exported = export_parquet(drawn.trace, drawn.num_steps, out, drawn.origin)
    facts = {
        "file": str(out),
        "rows": exported.rows,
        "clients": exported.clients,
        "training samples": exported.train,
        "test samples": exported.test,
        "data steps": drawn.num_steps,
        "shape": list(drawn.trace.sample_shape),
        "bytes": out.stat().st_size,
    }
    if request.output is OutputFormat.JSON:
        print_json(facts)
        return
    say(
        f"{out}: {exported.rows:,} rows of {exported.clients:,} clients over {drawn.num_steps:,} data steps, "
        f"{exported.train:,} for training and {exported.test:,} for tests, shape {drawn.trace.sample_shape}"
    )


def _checked_out(request: Request) -> Path:
    if request.to not in FORMATS:
        given = "is missing" if request.to is None else f"{request.to}: is no format of a table"
        raise InputError(f"--to {given}; must be {' or '.join(FORMATS)}")
    if request.out is None:
        raise InputError("--out is missing; it names the file to write, as trace.parquet")
    if request.out.suffix != ".parquet":
        raise InputError(f"--out {request.out}: must be a file that ends in .parquet")
    if lexists(request.out):
        raise InputError(f"--out {request.out}: exists; delete it, or give another name")
    if not request.out.parent.is_dir():
        raise InputError(f"--out {request.out}: there is no folder {request.out.parent}")
    return request.out


def _of_folder(request: Request) -> Drawn:
    if request.overrides:
        raise InputError(f"--set: is for a configuration, but {request.path} is a folder")
    given: dict[str, Any] = {
        "step_width": parse_width(request.step_width),
        "since": parse_bound("--since", request.since),
        "until": parse_bound("--until", request.until),
        "rounds_per_step": request.rounds_per_step,
        "retain_rounds": None if request.retain_rounds is None else parse_value(request.retain_rounds),
    }
    settings = {key: value for key, value in given.items() if value is not None}
    try:
        source = Folder(FileSettings.model_validate({"folder": str(request.path), **settings}))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise InputError(
            f"{_option(key)} {settings[key]}: {first['msg'].removeprefix('Value error, ')}"
        ) from error
    num_steps = source.num_steps(Path)
    _refuse_many(num_steps, "a larger --step-width or an earlier --until makes fewer")
    streams = RandomStreams(request.seed or 0)
    rounds = num_steps * source.settings.rounds_per_step
    trace = source.build(TraceContext(rounds, streams, Path))
    facts = read_facts(request.path)
    about = "; ".join(text for text in (request.path.resolve().name, facts.origin) if text)
    return Drawn(trace, num_steps, f"driftscale traces export of the folder {about}")


def _of_config(request: Request) -> Drawn:
    of_folder = ("step_width", "since", "until", "rounds_per_step", "retain_rounds")
    key = next((key for key in of_folder if getattr(request, key) is not None), None)
    if key is not None:
        raise InputError(
            f"{_option(key)}: is for a trace folder, but {named(request.path)} is none; a configuration has "
            f"trace.{key} (--set trace.{key}=...), if its source has it"
        )
    experiment, locate = load_without_torch(request.path, request.overrides, request.data)
    seed = experiment.seeds[0] if request.seed is None else request.seed
    streams, rounds = RandomStreams(seed), experiment.round.rounds
    with naming(named(request.path)):
        trace = experiment.trace.build().build(TraceContext(rounds, streams, locate))
        faults = Faults(experiment.faults, trace.num_clients, streams)
        trace = trace.with_flipped_labels(faults.clients("label_flip"))
        num_steps = -(-rounds // trace.rounds_per_step)
        _refuse_many(num_steps, "a lower round.rounds makes fewer")
    return Drawn(trace, num_steps, f"driftscale traces export of {experiment.name}, seed {seed}")


def _refuse_many(num_steps: int, remedy: str) -> None:
    if num_steps > MOST_STEPS:
        raise InputError(f"the trace has {num_steps} data steps; at most {MOST_STEPS} are exported: {remedy}")


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
