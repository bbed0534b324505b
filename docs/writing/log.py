"""The page of a run's log: the fields of its header, and those of a round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docs.writing.markdown import code, fence, heading, page, prose, table
from emulator.storage.round_schema import MOST_NUMBER_NAME, MOST_NUMBERS, TRIGGER_HINTS, RoundField
from emulator.storage.runlog import SCHEMA
from experiments.build import HEADER
from experiments.results.frames.columns import frame_columns

INTRODUCTION = """\
`<arm>/seed-<seed>/log.jsonl` of a run directory has one JSON object on each line: first the header, then a
line for each round. It has virtual quantities only, so that the same configuration and seed give the same
bytes. A reader of your own should ignore fields that it does not know."""

READING = """\
`emulator.storage.runlog.read_log(path)` gives the header and the rounds, checked, with arrays unpacked."""

ROUNDS = """\
A line of kind `"round"` has the fields of both tables. One that is *left out* is not in a line that would
have its default. Times are absolute, and `opened_s`, `dispatched_s` and `closed_s` in this order.

These are the columns of the frame [`rounds`](frames.md#rounds), with their meanings and units; of a list it
has the length, as `num_participants`. They are null where the column is missing."""

NO_COLUMNS = "These are no columns, or not under these names."

TRIGGERS = f"""\
`trigger` is an object, with the fields of one of these kinds, which are the columns `trigger_<field>` of the
frame. A trigger of your own has `numbers`,
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
    columns = frame_columns()["rounds"]
    of_frame = [item for item in SCHEMA.fields if {item.line_name, f"num_{item.line_name}"} & {*columns}]
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
        table(("fields", "type", "range", "left out"), list(_alike(map(_column, of_frame)))),
        NO_COLUMNS,
        table(
            ("field", "type", "meaning", "range", "null", "left out"),
            [_field(item) for item in SCHEMA.fields if item not in of_frame],
        ),
        heading(2, "What a trigger compared"),
        TRIGGERS,
        "\n".join(
            f"* {code(of.__name__)}: {', '.join(map(code, kinds))}" for of, kinds in TRIGGER_HINTS.items()
        ),
        heading(2, "What parts noted"),
        NOTED,
        heading(2, "Arrays"),
        ARRAYS,
    )


def _alike(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows with one for all fields that differ in their names alone."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *others in rows:
        names.setdefault(tuple(others), []).append(name)
    return ((", ".join(fields), *others) for others, fields in names.items())


def _column(item: RoundField) -> tuple[str, ...]:
    is_object = item.name in ("trigger", "silhouettes", "noted")
    shown = "object" if is_object else code(item.kind) if "[" in item.kind else item.kind
    left_out = f"if {'null' if item.default is None else item.default}" if item.is_optional else ""
    return code(item.line_name), shown, "at least 0" if item.logged.in_order else item.range, left_out


def _field(item: RoundField) -> tuple[str, ...]:
    name, kind, *others = _column(item)
    return name, kind, prose(item.logged.about), others[0], prose(item.logged.missing), *others[1:]
