"""Bad input that `driftscale cluster` refuses before it listens; the rest is in tests/experiments/cluster."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.experiments.cli.conftest import Driftscale


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("scheduler", "--host", "0.0.0.0"), "everybody who reaches a dask port"),
        (("scheduler", "--keys", "nowhere"), "certificate.pem: cannot be read"),
        (("scheduler", "--scheduler-file", "nowhere/x.json"), "--scheduler-file nowhere/x.json"),
        (("worker", "tcp://10.0.0.7:1"), "--insecure-cluster"),
        (("worker", "tcp://127.0.0.1:1", "--host", "0.0.0.0"), "everybody who reaches a dask port"),
        (("worker", "tcp://127.0.0.1:1", "--local-directory", "nowhere"), "no such folder"),
        (("worker", "10.0.0.7:1"), "must be tls://HOST:PORT"),
        (("worker", "tls://10.0.0.7:1"), "tls:// needs keys"),
        (("keys", "/dev/null/keys"), "no folder for keys can be made"),
    ],
)
def test_bad_input_is_one_line(arguments: Sequence[str], why: str, driftscale: Driftscale) -> None:
    ended = driftscale("cluster", *arguments)
    assert ended.code == 2
    assert why in ended.error
