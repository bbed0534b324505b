"""Checks the code in sentences: commands of driftscale, options, and keys of a configuration."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from emulator.errors import EmulatorError
from emulator.own_parts import is_own
from emulator.plugins import ChoiceOf, Registry
from experiments.config import Experiment, PartsRow
from tests.docs.blocks import ROOT
from tests.docs.check_commands import BENCH, all_options, check_bench, check_own, problem_of_call
from tests.docs.check_configurations import problem_of_fragment, texts_in
from tests.docs.check_named import WrongError
from tests.docs.check_python import Namespace, check_python
from tests.docs.our_names import has_name, module_names
from tests.docs.page_state import PageState
from tests.docs.product import all_registries
from tests.docs.shell import UnreadableLineError, simple_commands

OPTION = re.compile(r"--[a-z][a-z0-9-]*")
KEY = re.compile(r"[a-z_]+(\.[A-Za-z0-9_*<>…-]+)+")
FILES = {
    *("csv", "html", "json", "jsonl", "lock", "log", "md", "npy", "npz"),
    *("parquet", "py", "svg", "toml", "txt"),
}
TABLES = tuple(name for name in Experiment.model_fields if name not in ("name", "seeds"))
FOREIGN = {
    *("--master-addr", "--max-restarts", "--nnodes", "--node-rank", "--nproc-per-node", "--standalone"),
    *("--no-build-isolation", "--no-deps", "--durations", "--numprocesses", "--requeue", "--signal"),
}
"""Options of other programs that pages speak of."""


def problem_of_inline(text: str, state: PageState) -> str:
    """What is wrong with code in a sentence; empty if nothing is, or if it is of another kind."""
    try:
        if text.startswith(("driftscale ", f"python -m {BENCH}")) and "(" not in text:
            for command in simple_commands(text):
                if command.words[0] == "driftscale":
                    check_own(command.words[1:], state, is_run=False, is_part=True)
                elif (words := command.after("-m", BENCH)) is not None:
                    check_bench(words, is_run=False, is_part=True)
        elif text.startswith(("driftscale.", "results.")):
            return _problem_of_call(text, state)
        elif text.startswith("--"):
            return _problem_of_option(text)
        else:
            return _problem_of_key(text, state)
    except UnreadableLineError:
        return ""
    except (WrongError, EmulatorError) as error:
        return str(error)
    return ""


def _problem_of_call(text: str, state: PageState) -> str:
    """What is wrong with a name of the package, or of results, as in `results.plot_accuracy()`."""
    is_group = text in {registry.group for registry in all_registries()}
    is_file = text.rpartition(".")[2] in FILES
    if is_group or is_file or not _is_expression(text):
        return ""
    found: list[str] = []
    check_python(
        f"import driftscale\nresults = driftscale.load('runs')\n{text}\n",
        Namespace(state.namespace.frames),
        lambda line, problem: found.append(problem),
        lambda arguments: problem_of_call(arguments, state),
    )
    return found[0] if found else ""


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _problem_of_option(text: str) -> str:
    option = re.split(r"[ =]", text, maxsplit=1)[0]
    is_other = not OPTION.fullmatch(option) or option in FOREIGN
    if is_other or option in all_options() or option in of_scripts():
        return ""
    return f"no command of driftscale has an option {option}"


@cache
def of_scripts() -> frozenset[str]:
    """The options of the scripts among the tests, and of pytest in this tree."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    scripts = [text for text in texts if re.search("argparse|addoption|sys.argv", text)]
    return frozenset(option for text in scripts for option in re.findall('"(--[a-z-]+)"', text))


def _problem_of_key(text: str, state: PageState) -> str:
    """What is wrong with a key, alone or with a value, if its first part is a table of a configuration."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if key in PartsRow.model_fields and equals:
        return _problem_of_part(key, value, state)
    parts = key.split(".")
    if not KEY.fullmatch(key) or parts[0] not in TABLES or parts[-1] in FILES:
        return ""
    if has_key(Experiment, parts) or _is_ours(parts):
        return ""
    return f"a configuration has no key {key}"


def _problem_of_part(key: str, value: str, state: PageState) -> str:
    """What is wrong with the parts that an arm is given, as in `selector = "random"`."""
    try:
        table = tomllib.loads(f"{key} = {value}")
    except tomllib.TOMLDecodeError:
        return ""
    own = [name for name in texts_in(table) if is_own(name)]
    return "" if own else problem_of_fragment({"arm": [{"name": "mine", **table}]}, state)


def _is_ours(parts: Sequence[str]) -> bool:
    """Whether it is a name in one of our modules, such as `executor.models`."""
    names = module_names(parts[0])
    return names is not None and has_name(names, parts[1])


def has_key(model: type[BaseModel], parts: Sequence[str]) -> bool:
    """Whether a dotted key leads somewhere in a table; of a list, entries and names may be left out."""
    if not parts or set(parts[0]) & set("*<…"):
        return True
    field = model.model_fields.get(parts[0])
    if field is None:
        return False
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return len(parts) == 1 or any(
        _leads(inner, rest) for inner in _tables_in(annotation) for rest in _rests(annotation, parts[1:])
    )


def _rests(annotation: Any, parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The parts that may be keys in a value: of a list or a mapping, also those after an entry's name."""
    yield parts
    if any(origin in (tuple, list, dict) for origin in _origins(annotation)):
        yield parts[1:]


def _origins(annotation: Any) -> Iterator[Any]:
    yield get_origin(annotation)
    for inner in get_args(annotation):
        yield from _origins(inner)


def _tables_in(annotation: Any) -> Iterator[Any]:
    """The models, and the choices of parts, in an annotation."""
    if isinstance(annotation, ChoiceOf) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for inner in get_args(annotation):
        yield from _tables_in(inner)
    if get_origin(annotation) is dict:
        yield dict


def _leads(table: Any, parts: Sequence[str]) -> bool:
    if table is dict:
        return len(parts) <= 1
    if isinstance(table, ChoiceOf):
        return (
            not parts
            or parts[0] == table.key
            or any(has_key(of, parts) for of in settings_of(table.registry))
        )
    return has_key(table, parts)


@cache
def settings_of(registry: Registry[Any]) -> tuple[type[BaseModel], ...]:
    """The settings of all parts of a kind; torch is not imported for them."""
    if registry.loads_late:
        found = [registry.early_settings(name) for name in registry.names()]
    else:
        found = [part.Settings for _, part in registry]
    return tuple(of for of in found if of is not None)
