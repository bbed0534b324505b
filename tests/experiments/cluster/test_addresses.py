"""Addresses of schedulers: which are accepted, and which are refused as unsafe."""

import json

import pytest

from emulator.errors import ConfigurationError, InputError
from experiments.cluster.addresses import MOST_FILE_BYTES, checked_address, is_loopback, scheduler_address


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ("tls://10.0.0.7:8786", "tls://10.0.0.7:8786"),
        ("tls://node-12.cluster:1", "tls://node-12.cluster:1"),
        ("tls://[fe80::1]:65535", "tls://[fe80::1]:65535"),
        ("tcp://127.0.0.1:8786/", "tcp://127.0.0.1:8786"),
        ("tcp://127.9.9.9:08786", "tcp://127.9.9.9:8786"),
        ("tcp://localhost:80", "tcp://localhost:80"),
        ("tcp://[::1]:80", "tcp://[::1]:80"),
    ],
)
def test_an_address_that_is_safe_to_talk_to_is_taken(given, means):
    assert checked_address(given, "--cluster", is_insecure=False) == means


@pytest.mark.parametrize(
    "host", ["10.0.0.7", "node", "0.0.0.0", "128.0.0.1", "[fe80::1]", "127.0.0.1.evil.org"]
)
def test_an_address_without_tls_beyond_this_machine_is_taken_on_request_alone(host):
    address = f"tcp://{host}:8786"
    with pytest.raises(ConfigurationError, match=r"runs whatever it is sent.*tls://.*--insecure-cluster"):
        checked_address(address, "--cluster", is_insecure=False)
    assert checked_address(address, "--cluster", is_insecure=True) == address


@pytest.mark.parametrize(
    "given",
    [
        "",
        "node:8786",
        "http://node:80",
        "inproc://1/2/3",
        "TLS://node:1",
        "tls://",
        "tls://node",
        "tls://node:",
        "tls://node:0",
        "tls://node:65536",
        "tls://node:-1",
        "tls://node:8786/x",
        "tls://user@node:8786",
        "tls://fe80::1:80",
        "tls://no de:80",
        "tls://node:80\n",
        "tls://node:٣",
    ],
)
def test_anything_else_is_refused_with_the_choices(given):
    with pytest.raises(ConfigurationError, match=r"--cluster .*must be tls://HOST:PORT, tcp://HOST:PORT or"):
        scheduler_address(given, "--cluster", is_insecure=True, patience_s=0)


@pytest.mark.parametrize("host", ["2130706433", "127.1", "0", "::", "::ffff:10.0.0.1", "Localhost.evil.org"])
def test_only_the_machine_itself_counts_as_loopback(host):
    assert not is_loopback(host)
    assert is_loopback("LOCALHOST")


def test_a_scheduler_file_names_the_address(tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"type": "Scheduler", "address": "tls://10.0.0.7:1", "workers": {}}))
    assert scheduler_address(str(file), "--cluster", is_insecure=False, patience_s=0) == "tls://10.0.0.7:1"


def test_the_address_in_a_scheduler_file_is_checked_as_any_other(tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://10.0.0.7:1"}')
    with pytest.raises(ConfigurationError, match=r"scheduler.json.*--insecure-cluster"):
        scheduler_address(str(file), "--cluster", is_insecure=False, patience_s=0)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cannot be read"),
        (b"tls://10.0.0.7:1", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100, "cannot be read"),
        (b" " * (MOST_FILE_BYTES + 1), "more than"),
        (b"[]", "not a scheduler file"),
        (b'{"address": 1}', "not a scheduler file"),
    ],
)
def test_a_file_that_is_no_scheduler_file_is_refused_by_name(tmp_path, content, why):
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=rf"other\.json.*{why}"):
        scheduler_address(str(file), "--cluster", is_insecure=False, patience_s=0)


def test_a_scheduler_file_that_never_comes_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"no such scheduler file \(waited 0\.2 s\)"):
        scheduler_address(str(tmp_path / "none"), "--cluster", is_insecure=False, patience_s=0.2)
