"""The page of a run's log: the fields of its header, and those of a round."""

from __future__ import annotations

from collections.abc import Iterator

from docs.writing.frames import columns_table
from docs.writing.markdown import code, fence, heading, page, prose, table
from emulator.storage.round_schema import MOST_NUMBER_NAME, MOST_NUMBERS, TRIGGER_HINTS, RoundField
from emulator.storage.runlog import SCHEMA
from experiments.build import HEADER
from experiments.results.frames.columns import TRIGGER

INTRODUCTION = """\
`<arm>/seed-<seed>/log.jsonl` of a run directory has one JSON object on each line: first the header, then a
line for each round. It has virtual quantities only, so that the same configuration and seed give the same
bytes. A reader of your own should ignore fields that it does not know."""

READING = """\
`emulator.storage.runlog.read_log(path)` gives the header and the rounds, checked, with arrays unpacked; the
frame [`rounds`](frames.md#rounds) has most of it in columns."""

ROUNDS = """\
A line of kind `"round"` has these fields. One that is *left out* is not in a line that would have its
default. Times are absolute, and `opened_s`, `dispatched_s` and `closed_s` in this order."""

TRIGGERS = f"""\
`trigger` is an object, with the fields of one of these kinds. A trigger of your own has `numbers`,
`clusters` and `fired`: `numbers` maps at most {MOST_NUMBERS} names in a run, each of at most
{MOST_NUMBER_NAME} lower-case letters, digits and underscores, to a finite number, or to a list with one for
each of `clusters`."""

NOTED = f"""\
`noted` maps at most {MOST_NUMBERS} names in a run, of the same form, to finite numbers that parts noted in
the round."""

ARRAYS = """\
A field with a value for each client is a list of numbers up to a thousand clients. A longer one is an
object: `dtype`, `shape`, and the numbers, compressed (`emulator/storage/packed.py`). `members` may be
written as a difference: the clients whose label changed since the last line that has it, and their new
labels."""

EXAMPLE = """\
{"kind":"run","arm":"fielding","seed":0,"num_clients":200,"num_labels":10, …}
{"kind":"round","round":0,"step":0,"opened_s":0.0,"dispatched_s":2.1, …}"""


def log_page() -> str:
    """The page of a run's log."""
    header = [
        (code(name), prose(item.about), prose(item.present or "always")) for name, item in HEADER.items()
    ]
    return page(
        "The log",
        INTRODUCTION,
        fence("text", EXAMPLE),
        READING,
        heading(2, "The header"),
        'The first line, of kind `"run"`, has the facts that all rounds share.',
        table(("field", "meaning", "when it is there"), header),
        heading(2, "A round"),
        ROUNDS,
        table(
            ("field", "type", "meaning", "unit", "range", "null"),
            [_field(item) for item in SCHEMA.fields],
        ),
        heading(2, "What a trigger compared"),
        TRIGGERS,
        *_triggers(),
        heading(2, "What parts noted"),
        NOTED,
        heading(2, "Arrays"),
        ARRAYS,
    )


def _field(item: RoundField) -> tuple[str, ...]:
    logged = item.logged
    is_object = item.name in ("trigger", "silhouettes", "noted")
    null = logged.missing + ("; then left out" if item.is_optional and logged.missing else "")
    if item.is_optional and not logged.missing:
        null = f"left out if {item.default}"
    return (
        code(item.line_name),
        "object" if is_object else code(item.kind) if "[" in item.kind else item.kind,
        prose(logged.about),
        prose(logged.unit),
        "at least 0" if logged.in_order else item.range,
        prose(null),
    )


def _triggers() -> Iterator[str]:
    for message, hints in TRIGGER_HINTS.items():
        yield heading(3, code(message.__name__))
        yield columns_table({name: TRIGGER[name] for name in hints}, "field")
