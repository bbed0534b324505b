import json
import sys

import pytest

from emulator.errors import InputError
from experiments.results.reading.json_files import Timing
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.synthetic_runs import a_directory, a_run, store
from tests.processes.forked import Forked


@pytest.fixture
def directory(tmp_path):
    return a_directory(tmp_path / "run", ["global", "fielding"], [2, 0])


def test_a_stored_run_is_read_back_whole(directory):
    run = a_run("fielding", 2, [0.25, 0.5])
    store(directory, run)
    assert directory.is_done("fielding", 2)
    read = directory.read_run("fielding", 2)
    assert (read.records, read.timing) == (run.records, run.timing)
    assert read.header == {"arm": "fielding", "seed": 2}


@pytest.mark.parametrize(
    ("asked", "left_out"),
    [
        ([], []),
        (["global"], ["static"]),  # of fielding there is a run, whoever asked for it
        (["global", "static"], []),
        (["global", None], []),
    ],
)
def test_arms_are_left_out_that_no_command_asked_for(tmp_path, asked, left_out):
    directory = a_directory(tmp_path, ["global", "static", "fielding"], [2, 0])
    options = [[] if arm is None else ["--arms", arm] for arm in asked]
    started = {"started": "2026-01-31T12:00:00Z"}
    commands = [{"arguments": ["driftscale", "run", "x", *option], **started} for option in options]
    directory.manifest_path.write_text(json.dumps({"commands": commands} if commands else {}))
    directory.start("fielding", 0)
    assert directory.left_out() == left_out
    asked_for = [arm for arm in ("global", "static", "fielding") if arm not in left_out]
    assert directory.asked_pairs() == [(arm, seed) for arm in asked_for for seed in (2, 0)]


def test_a_timing_names_its_machine_and_what_is_left_out_is_0(directory):
    directory.start("global", 0)
    directory.mark_done(
        "global", 0, {"host": "node3", "cpu_capability": "AVX2", "wall_s": 2.0, "runs_beside": 1}
    )
    assert json.loads(directory.run_file("global", 0, "timing.json").read_text())["host"] == "node3"
    timing = directory.read_timing("global", 0)
    assert timing == Timing(host="node3", cpu_capability="AVX2", wall_s=2.0, runs_beside=1)
    assert (timing.train_s, timing.resumed) == (0.0, 0)
    assert timing.peak_memory_bytes is timing.cpu_s is None


@pytest.mark.parametrize("key", ["host", "cpu_capability"])
@pytest.mark.parametrize("value", [3, None, ["node3"], "a\x1b[31m", "two\nlines", "x" * 256])
def test_a_text_of_a_timing_that_cannot_be_printed_is_refused(directory, key, value):
    directory.start("global", 0)
    directory.run_file("global", 0, "timing.json").write_text(json.dumps({"wall_s": 2.0, key: value}))
    with pytest.raises(InputError, match=rf"timing.json: {key}(:| = )"):
        directory.read_timing("global", 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"wall_s": "AVX2"}', "wall_s = 'AVX2': input should be a valid number"),
        ('{"wall_s": 2.0, "train_s": "node3"}', "train_s = 'node3': input should be a valid number"),
        ('{"host": "node3"}', "wall_s: field required"),
        ('{"wall_s": null}', "wall_s: input should be a valid number"),
        ('{"wall_s": true}', "wall_s = True: input should be a valid number"),
        ('{"wall_s": 1e999}', "wall_s = inf: input should be a finite number"),
        ('{"wall_s": -2.0}', "wall_s = -2.0: input should be greater than or equal to 0"),
        ('{"wall_s": 2.0, "cpu_s": null}', "cpu_s: must be a number, or left out"),
        ('{"wall_s": 2.0, "resumed": 0.5}', "resumed = 0.5: input should be a valid integer"),
        ('{"wall_s": 2.0, "trian_s": 1.0}', "unknown key 'trian_s'; choices: host, cpu_capability, wall_s, "),
    ],
)
def test_a_number_of_a_timing_that_cannot_be_is_named(directory, content, problem):
    directory.start("global", 0)
    directory.run_file("global", 0, "timing.json").write_text(content)
    with pytest.raises(InputError, match=rf"timing.json: {problem}"):
        directory.read_timing("global", 0)


def test_runs_come_in_the_configured_order(directory):
    for arm, seed in [("fielding", 0), ("fielding", 2), ("global", 0), ("global", 2)]:
        store(directory, a_run(arm, seed, [0.5]))
    order = [(run.arm, run.seed) for run in directory.reported_runs()]
    assert order == [("global", 2), ("global", 0), ("fielding", 2), ("fielding", 0)]


def test_an_unfinished_run_is_not_read(directory):
    directory.start("global", 0)
    assert directory.reported_runs() == []
    with pytest.raises(InputError, match="arm 'global', seed 0 is not finished"):
        directory.read_run("global", 0)


def test_a_failed_run_keeps_its_reason_until_it_is_started_again(directory):
    directory.start("global", 0)
    directory.mark_failed("global", 0, "nobody was ever online")
    assert directory.failure("global", 0) == "nobody was ever online"
    assert not directory.is_done("global", 0)
    directory.start("global", 0)
    assert directory.failure("global", 0) is None


def test_starting_clears_what_an_earlier_attempt_left(directory):
    store(directory, a_run("global", 0, [0.5]))
    folder = directory.start("global", 0)
    assert list(folder.iterdir()) == []


def test_no_directory_no_experiment_and_damaged_files_are_one_line_each(directory, tmp_path):
    with pytest.raises(InputError, match="no such run directory"):
        RunDirectory(tmp_path / "absent").arms()
    with pytest.raises(InputError, match="not a run directory"):
        RunDirectory(tmp_path).arms()
    store(directory, a_run("global", 0, [0.5]))
    directory.run_file("global", 0, "timing.json").write_text("{")
    with pytest.raises(InputError, match=r"timing.json: cannot be read as JSON"):
        directory.read_run("global", 0)
    directory.run_file("global", 0, "timing.json").write_text("[]")
    with pytest.raises(InputError, match=r"timing.json: must hold a JSON object"):
        directory.read_run("global", 0)
    directory.experiment_path.write_text("name = 'x'")
    with pytest.raises(InputError, match="key 'seeds' is missing"):
        directory.arms()
    directory.experiment_path.write_text("name = ")
    with pytest.raises(InputError, match="cannot be read as TOML"):
        directory.arms()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "global"', 'name = "global"\nbaseline = "yes"', "baseline of an arm must be true or false"),
        ("window = 5", "window = 5\nheadline = 3", "report.headline must be the name of an arm"),
        ("window = 5", "window = 5\nfirst = [3]", "report.first must be the name of a figure or table"),
        ("window = 5", 'window = 5\nheadline = "feeling"', "report.headline must be the name of an arm"),
        ("window = 5", "window = 5\ntarget = 0.6", "report.target: of an earlier version of driftscale"),
    ],
)
def test_a_recorded_baseline_or_headline_that_cannot_be_is_named(directory, old, new, problem):
    text = directory.experiment_path.read_text()
    assert old in text
    directory.experiment_path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=problem):
        directory.experiment()


@pytest.mark.parametrize("arm", ["", ".", "..", "../elsewhere", "a/b", "a\\b", "a\0b"])
def test_an_arm_cannot_lead_out_of_the_directory(directory, arm):
    with pytest.raises(InputError, match="must serve as the name of a folder"):
        directory.start(arm, 0)


WRITER = """
import sys, time
from pathlib import Path
from experiments.results.reading.run_directory import RunDirectory
directory, number, until = RunDirectory(Path(sys.argv[1])), 0, time.monotonic() + 2
while time.monotonic() < until:
    for seed in (0, 2):
        checkpoints = directory.checkpoints("global", seed)
        for number in range(number, number + 10):
            checkpoints.write(number, {"round": number})
    directory.mark_failed("global", 2, "diverged")
    directory.delete_run("global", 2)
    directory.start("global", 2)
"""


@pytest.mark.slow
def test_a_look_at_the_files_of_a_run_beside_the_process_that_writes_them_never_fails(directory):
    for seed in (0, 2):
        directory.start("global", seed)
    looks = 0
    with Forked([sys.executable, "-c", WRITER, str(directory.path)]) as writer:
        while writer.poll() is None:
            directory.refuse_foreign()
            directory.checkpoints("global", 0).files()
            directory.resumable_pairs()
            directory.holds_runs()
            directory.has_leftovers("global", 2)
            directory.failure("global", 2)
            looks += 1
    assert writer.returncode == 0
    assert looks > 10
