"""Temporary folders of commands: each deletes its own, and those of commands that were killed."""

import os
import subprocess
import sys

import dask
import pytest

from experiments.cluster.scratch import scratch_folder

KILLED = """
import os, sys
from pathlib import Path
from experiments.cluster.scratch import scratch_folder

with scratch_folder(Path(sys.argv[1])):
    os.kill(os.getpid(), 9)
"""


def test_a_folder_is_there_within_and_gone_afterwards(tmp_path):
    with scratch_folder(tmp_path):
        (folder,) = tmp_path.iterdir()
        assert dask.config.get("temporary-directory") == str(folder)
        assert folder.stat().st_mode & 0o077 == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_folder_of_a_killed_command_is_deleted_and_that_of_one_at_work_is_not(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    with scratch_folder(tmp_path):
        (at_work,) = tmp_path.iterdir()
        assert at_work != left
        with scratch_folder(tmp_path):
            assert at_work in tmp_path.iterdir()


@pytest.mark.parametrize("name", ["driftscale-results", "driftscale-0", "driftscale"])
def test_a_folder_of_the_users_stays(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "manifest.json").write_text("{}")
    with scratch_folder(tmp_path):
        pass
    assert (tmp_path / name / "manifest.json").exists()
