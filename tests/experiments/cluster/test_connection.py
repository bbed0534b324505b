"""A command's own workers: who may connect to them, what they survive, and how they end."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time

import distributed
import psutil
import pytest

from emulator.errors import ConfigurationError, InputError
from experiments.cluster.connection import joined_cluster, local_cluster
from experiments.cluster.keys import make_credentials, write_keys
from tests.processes import forked

PATIENCE_S = 240
AT_ONCE_S = 20
"""Wall seconds within which workers are gone, however long their tasks would take."""


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def eventually(claim):
    deadline_s = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline_s, "never happened"
        time.sleep(0.05)


def pids(client):
    return set(client.run(os.getpid).values())


def listening(client):
    """(host, port) of everything that this command and its workers listen at."""
    processes = [psutil.Process(), *map(psutil.Process, pids(client))]
    return {
        tuple(connection.laddr)
        for process in processes
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


def test_nothing_listens_but_scheduler_workers_and_nannies_on_loopback(client):
    addresses = listening(client)
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    assert len(addresses) == 5


def test_a_client_without_a_certificate_is_refused_at_every_port(client):
    bare = ssl.create_default_context()
    bare.check_hostname = False
    bare.verify_mode = ssl.CERT_NONE
    for address in listening(client):
        with socket.create_connection(address, timeout=PATIENCE_S) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert received(plain) in (b"", None)
        with (
            socket.create_connection(address, timeout=PATIENCE_S) as plain,
            bare.wrap_socket(plain) as wrapped,
        ):
            assert received(wrapped) in (b"", None)  # the handshake of TLS 1.3 ends with the first read


def received(connection):
    try:
        return connection.recv(1)
    except (ConnectionResetError, ssl.SSLError):  # not TimeoutError: a connection that waits was accepted
        return None


def test_a_certificate_of_another_cluster_is_refused(client):
    stranger = make_credentials().security()
    with pytest.raises(OSError, match="certificate"):
        distributed.Client(
            client.scheduler.address, security=stranger, timeout=PATIENCE_S, set_as_default=False
        )


def test_workers_have_one_thread_and_neither_limits_nor_a_profiler(client):
    def facts(dask_worker):
        return (
            dask_worker.state.nthreads,
            dask_worker.memory_manager.memory_limit,
            "profile" in dask_worker.periodic_callbacks,
            os.environ.get("MALLOC_TRIM_THRESHOLD_"),
        )

    assert set(client.run(facts).values()) == {(1, None, False, None)}


def test_workers_ignore_the_signals_of_their_command(client):
    before = pids(client)
    for pid in before:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            os.kill(pid, number)
    assert client.submit(sum, [1, 2], pure=False).result(PATIENCE_S) == 3
    assert pids(client) == before


def test_a_killed_worker_fails_its_task_and_is_replaced(client):
    before = pids(client)
    with pytest.raises(distributed.KilledWorker):
        client.submit(os._exit, 1, pure=False).result(PATIENCE_S)
    eventually(lambda: len(client.scheduler_info()["workers"]) == 2 and len(pids(client)) == 2)
    after = pids(client)
    assert after != before
    for pid in after:
        os.kill(pid, signal.SIGINT)
    assert pids(client) == after


COMMAND = """
import os, signal, time
if __name__ == "__main__":
    from experiments.cluster.connection import local_cluster
    try:
        with local_cluster(2) as client:
            tasks = [client.submit(time.sleep, 60, pure=False) for _ in range(2)]
            pids = list(client.run(os.getpid).values())
            print(*pids, flush=True)
            {then}
    except KeyboardInterrupt:
        pass
"""


def start(tmp_path, then):
    return forked.Forked(
        [sys.executable, "-c", COMMAND.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)},
    )


@pytest.mark.sweep
def test_workers_end_with_a_killed_command(tmp_path):
    with start(tmp_path, "time.sleep(60)") as command:
        workers = [int(pid) for pid in command.stdout.readline().split()]
        assert len(workers) == 2
        command.kill()
        eventually(lambda: not any(map(psutil.pid_exists, workers)))


def test_workers_at_work_or_stuck_are_killed_at_the_end_and_dask_prints_nothing(tmp_path):
    with start(tmp_path, "os.kill(pids[0], signal.SIGSTOP)") as command:
        workers = [int(pid) for pid in command.stdout.readline().split()]
        out, errors = command.communicate(timeout=AT_ONCE_S)
    assert (command.returncode, out, errors) == (0, "", "")
    assert not any(map(psutil.pid_exists, workers))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sweep
def test_ctrl_c_ends_the_command_and_dask_prints_nothing(tmp_path):
    with start(tmp_path, "time.sleep(60)") as command:
        workers = [int(pid) for pid in command.stdout.readline().split()]
        for pid in [command.pid, *workers]:  # as a terminal does
            os.kill(pid, signal.SIGINT)
        _, errors = command.communicate(timeout=PATIENCE_S)
    assert (command.returncode, errors) == (0, "")
    assert not any(map(psutil.pid_exists, workers))


def test_an_absent_scheduler_is_reported_in_a_line(monkeypatch):
    monkeypatch.setattr("experiments.cluster.connection.CONNECT_S", 0.5)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # without listening
        address = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        with (
            pytest.raises(InputError, match=r"no scheduler responds there within 0\.5 s"),
            joined_cluster(address),
        ):
            pass


def test_a_port_that_never_answers_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("experiments.cluster.connection.CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(InputError, match=r"no scheduler responds there within 0\.5 s"),
            joined_cluster(address),
        ):
            pass


def test_keys_of_another_cluster_are_refused_at_once(client, tmp_path):
    write_keys(tmp_path / "keys")
    address = client.scheduler.address
    started_s = time.monotonic()
    with pytest.raises(InputError, match="same keys"), joined_cluster(address, tmp_path / "keys"):
        pass
    assert time.monotonic() - started_s < 5


def test_tls_without_keys_names_both_places_for_them(client):
    with (
        pytest.raises(ConfigurationError, match=r"--keys DIR .*distributed\.comm\.tls"),
        joined_cluster(client.scheduler.address),
    ):
        pass


def test_keys_are_of_no_use_without_tls(tmp_path):
    write_keys(tmp_path / "keys")
    with (
        pytest.raises(ConfigurationError, match="are for tls://"),
        joined_cluster("tcp://127.0.0.1:1", tmp_path / "keys"),
    ):
        pass
