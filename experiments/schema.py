"""The JSON schema of a configuration, by which editors complete keys and mark mistakes while one is written.

It comes from the classes that validate a configuration, and no part is imported that needs torch. A schema
sees one file, and not what that extends: so no key is required, and a table of a part need not name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import NoneType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from emulator.own_parts import is_ours
from emulator.plugins import PART
from experiments.config import THRESHOLDS, Experiment
from experiments.part_kinds import PartKind, part_kinds
from experiments.reading import SWEEP

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Json = dict[str, Any]

TEXT, WHOLE, NUMBER, TABLE = ({"type": name} for name in ("string", "integer", "number", "object"))

ALSO: Mapping[str, Json] = {
    "_a_number_is_constant": NUMBER,
    "_a_word_is_its_kind": TEXT,
    "_as_text": WHOLE,
    "_file_alone": TEXT,
    "_number_alone": NUMBER,
    "_read_one_target": {**TABLE, "required": ["target"]},
}
"""What validators read in place of what they declare, by the name of the validator."""

ALONE = ("alone_is_a_list", "_operations")
"""Validators of lists that read one entry alone, too."""

OWN = {**TEXT, "pattern": "[:.]"}
"""The name of a part of one's own, "my_module:MyPart", or the path of a table in place of a part."""


class _AsRead(GenerateJsonSchema):
    """The schema of what is read: before validators change it, without null, which TOML lacks."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """What is declared, and what our validators read beside it; with a validator of others, anything."""
        declared, function = super().function_before_schema(schema), schema["function"]["function"]
        name = function.__name__
        also = ALSO.get(name) if is_ours(function) else {}
        also = declared["items"] if name in ALONE else also
        return declared if also is None else {"anyOf": [declared, also]}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of a table, whose keys are closed beside what else is read."""
        made = super().model_schema(schema)
        if "anyOf" in made:
            made["anyOf"][0]["additionalProperties"] = made.pop("additionalProperties")
        return made

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema with a default that is neither a table nor nothing."""
        made = super().default_schema(schema)
        if isinstance(made.get("default"), dict | NoneType):
            made.pop("default", None)
        return made

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """The schema without null."""
        return self.generate_inner(schema["schema"])

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Never: what is extended may have it."""
        return False

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a title would be the key once more."""
        return False


def configuration_schema() -> Json:
    """The JSON schema of a configuration."""
    settings = {name: _settings(kind) for name, kind in part_kinds().items()}
    models: list[type[BaseModel]] = [Experiment]
    models += dict.fromkeys(chain.from_iterable(of_kind.values() for of_kind in settings.values()))
    made, schema = models_json_schema([(model, "validation") for model in models], schema_generator=_AsRead)
    definitions = schema["$defs"]
    tables: dict[type[BaseModel], Json] = {}
    for model in models:
        name = made[model, "validation"]["$ref"].rpartition("/")[2]
        tables[model] = {"properties": {}, **definitions.pop(name)}
    for name, kind in part_kinds().items():
        definitions[name] = _part(kind, {part: tables[model] for part, model in settings[name].items()})
    whole = {**tables[Experiment], "description": "A configuration of driftscale.", "$defs": definitions}
    whole["properties"][SWEEP] = {**TABLE, "description": "lists of values by dotted key"}
    return {"$schema": DIALECT, **_referring(whole)}


def _settings(kind: PartKind) -> dict[str, type[BaseModel]]:
    """The settings of our parts of a kind by name; those that load late are not imported."""
    registry = kind.registry
    find = registry.early_settings if registry.loads_late else lambda name: registry.find(name).Settings
    return {name: model for name in registry.ours() if (model := find(name)) is not None}


def _part(kind: PartKind, tables: Mapping[str, Json]) -> Json:
    """The schema of a part: its name, or a table with its name and settings."""
    key, names = "source" if kind.name == "source" else "kind", kind.registry.names()
    also = {THRESHOLDS: {"type": "array", "items": NUMBER}} if kind.name == "detector" else {}
    others: Json = {"anyOf": [OWN, {"enum": [name for name in names if name not in tables]}]}
    if key == "source":  # or a folder of images
        others = {"not": {"enum": [*tables]}}
    known: list[Json] = [
        {**table, "properties": {key: {"const": part}, **table["properties"], **also}, "required": [key]}
        for part, table in tables.items()
    ]
    return {
        "description": kind.about,
        "anyOf": [{"enum": names}, OWN, *known, {**TABLE, "properties": {key: others}}],
    }


def _referring(node: Any) -> Any:
    """A schema in which what takes a part refers to its kind."""
    if isinstance(node, list):
        return [_referring(item) for item in node]
    if not isinstance(node, dict):
        return node
    kinds = {kind.registry.kind: name for name, kind in part_kinds().items()}
    node = {key: _referring(item) for key, item in node.items()}
    return {**node, "$ref": f"#/$defs/{kinds[node.pop(PART)]}"} if PART in node else node
