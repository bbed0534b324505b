from __future__ import annotations

import json

from experiments.schema import configuration_schema
from tests.experiments.cli.conftest import Driftscale


def test_the_schema_is_printed_as_json(driftscale: Driftscale) -> None:
    ended = driftscale("schema")
    assert (ended.code, json.loads(ended.out)) == (0, configuration_schema())
