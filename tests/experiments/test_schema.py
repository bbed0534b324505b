from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from emulator.storage.bounded import read_toml, toml_document
from experiments.config import Experiment
from experiments.part_facts import part_facts
from experiments.part_kinds import part_kinds
from experiments.schema import ALONE, ALSO, DIALECT, configuration_schema
from experiments.shipped import shipped_files
from tests.experiments.small import DRIFTING, SMALL

SCHEMA = configuration_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def refused(table: dict[str, Any]) -> list[list[str | int]]:
    """The keys that the schema refuses."""
    plain = json.loads(json.dumps(table, default=str))
    return [list(error.absolute_path) for error in VALIDATOR.iter_errors(plain)]


def test_it_is_a_schema_of_a_dialect_that_it_names() -> None:
    assert SCHEMA["$schema"] == DIALECT == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", shipped_files())
def test_every_shipped_configuration_fits(name: str) -> None:
    assert refused(read_toml(shipped_files()[name])) == []


@pytest.mark.parametrize("kind", part_kinds())
def test_the_example_of_every_part_fits(kind: str) -> None:
    for name in part_kinds()[kind].registry.ours():
        assert refused(toml_document(part_facts(part_kinds()[kind], name).example)) == [], name


@pytest.mark.parametrize(
    "table",
    [
        SMALL,
        DRIFTING,
        {"extends": ["digits", "mine.toml"], "arms": ["global"], "sweep": {"round.rounds": [3, 4]}},
        {"arm": [{"name": "fielding", "clusterer": {"max_clusters": 4}}]},
        {
            "parts": {
                "selector": "my_parts:Mine",
                "solver": "sgd",
                "clusterer": {"kind": "my_parts:Own", "x": 1},
            }
        },
        {"devices": {"availability": "hours.csv"}, "training": {"start": "models.safetensors"}},
        {"report": {"target": 0.5}, "trace": {"source": "a-folder-of-images", "clients": 3}},
        {"report": {"published": {"accuracy_omitting_drift": {"a": 3, "b": [3, 0.5]}}}},
        {"trace": {"source": "digits", "changes": [{"what": "xor", "on": "held", "samples": 0.5}]}},
        {"detection": {"positive": {"rotate": [19, 29]}}},
        {"parts": {"detectors": {"d": {"kind": "ddm", "thresholds": [2, 2.5]}}}},
    ],
)
def test_what_is_read_fits(table: dict[str, Any]) -> None:
    assert refused(table) == []


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"rond": {}}, []),
        ({"round": {"rounds": 0}}, ["round", "rounds"]),
        ({"round": {"evaluate_clients": None}}, ["round", "evaluate_clients"]),
        ({"seeds": 3}, ["seeds"]),
        ({"parts": {"selector": "oot"}}, ["parts", "selector"]),
        ({"parts": {"selector": {"kind": "oort", "epsilom": 1}}}, ["parts", "selector"]),
        ({"training": {"model": {"kind": "mlp", "hidden": 16}}}, ["training", "model"]),
        ({"trace": {"source": "digits", "clientz": 3}}, ["trace"]),
    ],
)
def test_a_mistake_is_marked_where_it_is(table: dict[str, Any], key: list[str]) -> None:
    assert refused(table) == [key]


def test_keys_have_descriptions_and_plain_ones_their_defaults() -> None:
    rounds = SCHEMA["$defs"]["Round"]["properties"]
    field = Experiment.model_fields["round"].annotation.model_fields["over_commit"]
    assert rounds["over_commit"]["description"] == field.description
    assert rounds["over_commit"]["default"] == field.default
    assert rounds["hear"]["default"]


def test_what_validators_read_beside_is_that_of_validators_that_there_are() -> None:
    names = set(_before(Experiment.__pydantic_core_schema__))
    for kind in part_kinds().values():
        for name in kind.registry.ours():
            chosen = kind.registry.early_settings(name) or kind.registry.find(name).Settings
            names |= set(_before(chosen.__pydantic_core_schema__))
    assert {*ALSO, *ALONE} <= names


def _before(schema: Any) -> Iterator[str]:
    """The names of the validators that run before others in a core schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "function-before":
            yield schema["function"]["function"].__name__
        for item in schema.values():
            yield from _before(item)
    elif isinstance(schema, list | tuple):
        for item in schema:
            yield from _before(item)


def test_every_reference_is_defined_and_every_definition_referred_to() -> None:
    text = json.dumps(SCHEMA)
    names = {f"#/$defs/{name}" for name in SCHEMA["$defs"]}
    assert {piece.partition('"')[0] for piece in text.split('"$ref": "')[1:]} == names
