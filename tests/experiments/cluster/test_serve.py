"""`driftscale cluster` as users and batch systems start and end it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from experiments.cluster.connection import joined_cluster
from experiments.cluster.keys import write_keys
from experiments.cluster.settings import OWN_DATA
from tests.processes import forked

PATIENCE_S = 240


@pytest.fixture
def cluster(tmp_path):
    """Starts `driftscale cluster`, and waits for its first line; kills all its processes at the end."""
    started = []

    def start(*arguments, start=forked.Forked):
        process = start(
            [sys.executable, "-m", "experiments.cli", "cluster", *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        started.append(process)
        return process, process.stderr.readline()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """(exit code, standard error after the first line)."""
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def keep_until_stopped(state_file):
    """A task that ends when its process calls `leave`, as a run does that `members` plays."""
    import pathlib
    import sys
    import threading
    import types

    stop_requested = threading.Event()
    sys.modules["experiments.cluster.members"] = types.SimpleNamespace(leave=stop_requested.set)
    pathlib.Path(state_file).write_text("at work")
    stop_requested.wait(600)
    pathlib.Path(state_file).write_text("stored")
    return "stored"


def test_a_worker_that_is_told_to_end_has_its_run_stored_first(cluster, tmp_path):
    write_keys(tmp_path / "keys")
    file, state_file = tmp_path / "scheduler.json", tmp_path / "state"
    scheduler, line = cluster("scheduler", "--keys", tmp_path / "keys", "--scheduler-file", file)
    assert line.startswith("scheduler at tls://")
    folders = ["--keys", tmp_path / "keys", "--data", tmp_path, "--data", tmp_path / "keys"]
    worker, line = cluster("worker", file, *folders)
    assert line.startswith("1 worker for the scheduler at tls://")
    with joined_cluster(str(file), tmp_path / "keys") as client:
        assert set(client.run(os.getenv, OWN_DATA).values()) == {
            json.dumps([str(tmp_path), str(tmp_path / "keys")])
        }
        run = client.submit(keep_until_stopped, str(state_file), pure=False)
        while not state_file.exists():
            time.sleep(0.05)
        worker.send_signal(signal.SIGTERM)
        assert run.result(PATIENCE_S) == "stored"
        run.release()
        code, errors = ended(worker)
        assert code == 130
        assert errors.splitlines()[0] == "stopping: runs at work are stored first; once more stops at once"
        assert len(errors.splitlines()) == 2
    scheduler.send_signal(signal.SIGTERM)
    code, errors = ended(scheduler)
    assert (code, len(errors.splitlines())) == (130, 1)
    assert not file.exists()


@pytest.mark.sweep
def test_workers_end_with_their_scheduler(cluster):
    scheduler, line = cluster("scheduler")
    address = line.split()[-1]
    assert address.startswith("tcp://127.0.0.1:")
    worker, _ = cluster("worker", address, "--jobs", 2)
    scheduler.kill()
    assert ended(worker) == (0, f"the scheduler at {address} has ended\n")


@pytest.mark.sweep
def test_two_hosts_of_loopback_make_a_cluster(cluster):
    _, line = cluster("scheduler", "--host", "127.0.0.1")
    address = line.split()[-1]
    for host in ("127.0.0.1", "127.0.0.2"):
        cluster("worker", address, "--host", host)
    with joined_cluster(address) as client:
        hosts = {worker.rpartition(":")[0] for worker in client.scheduler_info()["workers"]}
    assert hosts == {"tcp://127.0.0.1", "tcp://127.0.0.2"}


def test_without_keys_nothing_listens_beyond_loopback(cluster):
    scheduler, line = cluster("scheduler", start=subprocess.Popen)
    worker, _ = cluster("worker", line.split()[-1], start=subprocess.Popen)
    processes = [scheduler, worker, *psutil.Process(worker.pid).children(recursive=True)]
    hosts = [
        connection.laddr.ip
        for process in processes
        for connection in psutil.Process(process.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert hosts == ["127.0.0.1"] * 3  # scheduler, nanny, worker


def test_a_port_that_is_taken_is_reported(cluster):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process, line = cluster("scheduler", "--port", port)
        assert f"--host 127.0.0.1 --port {port}: cannot listen there" in line
        assert ended(process) == (2, "")


def test_a_host_that_is_another_machine_is_reported(cluster):
    process, line = cluster("scheduler", "--host", "203.0.113.9", "--insecure-cluster")
    assert line.startswith("error: ")
    assert "cannot listen there" in line
    assert ended(process) == (2, "")


def test_a_client_that_gives_a_run_up_leaves_it_at_work(cluster, tmp_path):
    _, line = cluster("scheduler")
    address = line.split()[-1]
    cluster("worker", address)
    state_file = tmp_path / "state"
    with joined_cluster(address) as client:
        run = client.submit(keep_until_stopped, str(state_file), pure=False)
        while not state_file.exists():
            time.sleep(0.05)
        del run
    with joined_cluster(address) as client:
        assert state_file.read_text() == "at work"
        client.run(lambda: sys.modules["experiments.cluster.members"].leave())
        deadline_s = time.monotonic() + PATIENCE_S
        while state_file.read_text() != "stored":
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
