from __future__ import annotations

import errno
import os
import re
from types import ModuleType

import pytest

from emulator import errors
from emulator.errors import (
    ConfigurationError,
    DataFileError,
    EmulatorError,
    InputError,
    InterruptionError,
    LostOutputError,
    RunError,
    UnknownNameError,
    naming,
)


def drawn_tree(module: ModuleType) -> dict[str, tuple[str | None, int | None]]:
    """(parent, exit code if there is one) by name, from the drawing in the module's docstring."""
    tree: dict[str, tuple[str | None, int | None]] = {}
    path: list[tuple[int, str]] = []
    for line in (module.__doc__ or "").splitlines():
        match = re.match(r"^([ │├└─]*)(\w+Error)\b\s*(\d+)?", line)
        if match is None:
            continue
        depth, name, code = len(match[1]), match[2], match[3]
        path = [item for item in path if item[0] < depth]
        tree[name] = (path[-1][1] if path else None, int(code) if code else None)
        path.append((depth, name))
    return tree


def test_the_drawing_of_the_tree_is_the_tree() -> None:
    drawn = drawn_tree(errors)
    defined = {
        name: item
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, EmulatorError)
    }
    assert {name: parent for name, (parent, _) in drawn.items()} == {
        name: None if item is EmulatorError else item.__bases__[0].__name__ for name, item in defined.items()
    }
    assert {name: code for name, (_, code) in drawn.items() if code is not None} == {
        "InputError": InputError.exit_code,
        "RunError": RunError.exit_code,
        "InterruptionError": InterruptionError.exit_code,
        "LostOutputError": LostOutputError.exit_code,
    }


@pytest.mark.parametrize("kind", [InputError, ConfigurationError, UnknownNameError, DataFileError])
def test_whatever_was_handed_in_wrong_ends_with_2(kind: type[EmulatorError]) -> None:
    assert kind.exit_code == 2


def test_a_run_that_cannot_go_on_ends_with_3() -> None:
    assert RunError.exit_code == 3


def test_a_file_error_names_the_file_and_the_row() -> None:
    assert str(DataFileError("fleet.csv", "is empty")) == "fleet.csv: is empty"
    assert str(DataFileError("fleet.csv", "is negative", row=4)) == "fleet.csv, row 4: is negative"


def test_an_unknown_name_lists_the_choices_and_suggests_the_nearest() -> None:
    error = UnknownNameError("clusterer", "feilding", ["static", "fielding"], where="arm.clusterer")
    assert str(error) == (
        "arm.clusterer: unknown clusterer 'feilding'; choices: fielding, static; did you mean 'fielding'?"
    )


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert str(UnknownNameError("drift", "zzz", ["none"])) == "unknown drift 'zzz'; choices: none"
    assert str(UnknownNameError("drift", "zzz", [])) == "unknown drift 'zzz'; choices: none"


@pytest.mark.parametrize(
    ("number", "code", "why"),
    [
        (errno.EPIPE, 141, "standard output was closed: "),
        (errno.EBADF, 141, "standard output was closed: "),
        (errno.ENOSPC, 3, "standard output cannot be written (No space left on device): "),
    ],
)
def test_output_that_is_lost_ends_with_141_where_nobody_reads_it_and_with_3_where_there_is_no_room(
    number: int, code: int, why: str
) -> None:
    error = LostOutputError(OSError(number, os.strerror(number)))
    assert error.exit_code == code
    assert str(error).startswith(why)


def test_a_remedy_takes_the_place_of_the_nearest_name() -> None:
    error = UnknownNameError("key", "rounds", ["round"], remedy="did you mean round.rounds?")
    assert str(error) == "unknown key 'rounds'; choices: round; did you mean round.rounds?"


def test_a_place_is_named_before_the_first_mistake_and_the_others_stay() -> None:
    error = ConfigurationError("seeds = 3: must be a list")
    error.more = ["round: field required"]
    with pytest.raises(ConfigurationError, match=r"^x\.toml: seeds = 3: ") as refused, naming("x.toml"):
        raise error
    assert refused.value.more == ["round: field required"]
