"""`run`, `check` and `compare`, called from Python."""

from __future__ import annotations

import copy
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftscale
from driftscale.one_line import in_python
from emulator.errors import ConfigurationError, InputError, RunError
from experiments.results.pages.sentences import of_sections
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.runner import FailedRunsError
from tests.experiments.shipping import ship
from tests.experiments.small import SMALL, small_table, write_small

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def logs(path: Path) -> dict[str, bytes]:
    return {str(log.relative_to(path)): log.read_bytes() for log in path.rglob("log.jsonl")}


# -- run ----------------------------------------------------------------------------------------------------


def test_a_mapping_runs_as_its_file_does() -> None:
    of_file = driftscale.run(str(write_small(Path())), progress=False)
    given = copy.deepcopy(SMALL)
    of_mapping = driftscale.run(given, out="mapped", progress=False)
    assert (of_file.path, of_mapping.path) == (Path("runs/small"), Path("mapped"))
    assert logs(Path("runs/small")) == logs(Path("mapped")) != {}
    assert given == SMALL
    assert Path("mapped/report.html").is_file()


def test_arrays_are_taken_and_seed_0_is_in_the_recorded_call() -> None:
    options = {"round.rounds": np.int64(1)}
    driftscale.run(SMALL, options, np.arange(2), "two", arms=np.array(["global"]), progress=False)
    driftscale.run(SMALL, options, 0, "one", arms="global", progress=False)
    recorded = [
        json.loads(Path(name, "manifest.json").read_text())["commands"][0]["arguments"]
        for name in ("two", "one")
    ]
    assert recorded == [
        [
            "driftscale.run",
            "<mapping>",
            "set={'round.rounds': 1}",
            "seeds=[0, 1]",
            "out='two'",
            "arms=['global']",
        ],
        ["driftscale.run", "<mapping>", "set={'round.rounds': 1}", "seeds=0", "out='one'", "arms='global'"],
    ]


def test_values_of_numpy_and_ranges_are_taken(capfd: pytest.CaptureFixture[str]) -> None:
    results = driftscale.run(
        SMALL, {"round.rounds": np.int64(2)}, range(1, 3), "out", arms="global", progress=False
    )
    directory = RunDirectory(results.path)
    assert directory.reported_pairs() == [("global", 1), ("global", 2)]
    assert (directory.left_out(), results.unfinished) == (["fielding"], [])
    assert directory.experiment()["round"]["rounds"] == 2
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    driftscale.run(SMALL, {"round.rounds": 2}, arms=["global"])
    out, err = capfd.readouterr()
    assert out == ""
    assert "[1/1] global, seed 0: done in" in err


def test_a_sweep_fills_a_folder_of_run_directories() -> None:
    results = driftscale.run(SMALL, {"round.rounds": 2}, sweep={"round.participants": (2, 3)}, progress=False)
    assert results.path == Path("runs/small-sweep")
    assert {path.parent.name for path in results.path.glob("*/summary.json")} == {
        "small,participants=2",
        "small,participants=3",
    }
    assert (results.path / "table.html").is_file()


def test_the_call_is_recorded_in_the_manifest() -> None:
    config = write_small(Path())
    driftscale.run(config, {"round.rounds": 2}, seeds=[0], arms="global", progress=False)
    (command,) = json.loads(Path("runs/small/manifest.json").read_text())["commands"]
    assert command["arguments"] == [
        *("driftscale.run", str(config), "set={'round.rounds': 2}", "seeds=[0]", "arms='global'")
    ]


@pytest.mark.slow
def test_two_jobs_run_from_a_script_without_a_main_guard(tmp_path: Path) -> None:
    write_small(tmp_path, round={"rounds": 2, "participants": 3})
    script = tmp_path / "script.py"
    script.write_text(
        "import driftscale\nprint('begun')\n"
        "driftscale.run('small.toml', jobs=2, progress=False)\nprint('done')\n"
    )
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["begun", "done"], "")


def test_a_thread_may_run_too() -> None:
    found: list[object] = []
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(
        target=lambda: found.append(driftscale.run(SMALL, {"round.rounds": 2}, arms="global", progress=False))
    )
    thread.start()
    thread.join()
    assert len(found) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_stores_the_runs_and_the_same_call_resumes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from driftscale import output

    def interrupt(self: object, run: object, reached: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(output.Silent, "round_done", interrupt)
        with pytest.raises(
            KeyboardInterrupt, match="the same call resumes the rest from the last checkpoint"
        ):
            driftscale.run(SMALL, out="out", progress=False)
    assert RunDirectory(Path("out")).reported_pairs() == []
    assert RunDirectory(Path("out")).resumable_pairs() == [("global", 0)]
    driftscale.run(SMALL, out="out", progress=False)
    driftscale.run(SMALL, out="whole", progress=False)
    assert logs(Path("out")) == logs(Path("whole"))


def test_a_failed_run_raises_after_the_others_and_says_how_to_load_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = {**SMALL, "training": {**SMALL["training"], "learning_rate": 1e38}}
    given["round"] = {**SMALL["round"], "nonfinite_updates": "stop"}
    with pytest.raises(FailedRunsError) as caught:
        driftscale.run(given, progress=False)
    message = str(caught.value)
    assert message.startswith(
        "2 of 2 runs failed (global, seed 0; fielding, seed 0); finished runs are kept in"
    )
    assert message.endswith("driftscale.load of the run directory has the finished runs")
    assert isinstance(caught.value, RunError)
    assert "global, seed 0 failed: " in capfd.readouterr().err


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"set": {"parts.selector": "randm"}}, "config: parts.selector = 'randm': unknown selector 'randm'"),
        (
            {"set": {"arm.globel.selector": "oort"}},
            "set arm.globel.selector = 'oort': no arm is named 'globel'",
        ),
        ({"set": {"round.rounds": None}}, "set: round.rounds: None is no value of a configuration"),
        ({"set": "round.rounds=3"}, "set = 'round.rounds=3': must be a mapping"),
        ({"sweep": {"round.rounds": 3}}, "sweep: [sweep] round.rounds = 3: must be a list of values"),
        ({"seeds": "0..9"}, "seeds = '0..9': must be whole numbers"),
        ({"seeds": [0.5]}, "config: seeds"),
        ({"arms": "globel"}, "arms: unknown arm 'globel'; choices: fielding, global"),
        ({"arms": []}, "arms = []: must be a name, or a list of names that is not empty"),
        ({"arms": 3}, "arms = 3: must be a name, or a list of names"),
        ({"data": 3}, "data: 3 is not a path"),
        ({"jobs": 0}, "jobs='0': must be a number from 1 to 1024, or auto"),
        ({"until": 0}, "until=0: must be a number of rounds, from 1 to 4 (round.rounds)"),
        ({"until": "two"}, "until='two': must be a number of rounds"),
        ({"data": "nowhere"}, "nowhere: no such folder; data= (or DRIFTSCALE_DATA) must name"),
        ({"out": ""}, "out: is empty"),
        ({"config": "nowhere.toml"}, "nowhere.toml: no such configuration"),
        ({"config": 3}, "config: 3 is not a path"),
    ],
)
def test_bad_input_is_one_line_without_a_cause(options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        driftscale.run(**{"config": SMALL, "progress": False, **options})  # type: ignore[arg-type]
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"sets": {"round.rounds": 3}}, "did you mean 'set'?"),
        ({"rounds": 3}, "did you mean set={'round.rounds': 3}?"),
        ({"seed": 3}, "did you mean seeds=3?"),
        ({"optimizer": "adam"}, "an optimiser is a part"),
    ],
)
def test_an_argument_that_a_call_does_not_have_is_answered_with_what_was_meant(
    options: dict[str, Any], instead: str
) -> None:
    with pytest.raises(InputError) as refused:
        driftscale.run("mine.toml", **options)
    assert str(refused.value).startswith(
        f"driftscale.run: unknown argument {next(iter(options))!r}; choices: arms, "
    )
    assert instead in str(refused.value)


def test_a_traceback_ends_at_the_call() -> None:
    with pytest.raises(ConfigurationError) as caught:
        driftscale.run(SMALL, {"round.roundz": 3})
    assert [entry.path.name for entry in caught.traceback] == ["test_calls.py", "one_line.py"]  # type: ignore[union-attr]


def test_a_notebook_shows_the_line_alone() -> None:
    with pytest.raises(ConfigurationError) as caught:
        driftscale.run(SMALL, {"round.roundz": 3})
    assert caught.value._render_traceback_() == [f"ConfigurationError: {caught.value}"]


def test_a_run_directory_of_another_configuration_is_refused_in_words_of_python() -> None:
    driftscale.run(SMALL, {"round.rounds": 2}, arms="global", progress=False)
    with pytest.raises(ConfigurationError, match=r"^runs/small holds runs .* out=, or fresh=True to delete"):
        driftscale.run(SMALL, {"round.rounds": 2, "round.participants": 2}, arms="global", progress=False)


@pytest.mark.parametrize(
    ("of_command", "of_call"),
    [
        ("--out a/b: cannot be made a folder", "out=a/b: cannot be made a folder"),
        ("leave it out (--set 'trace.drift.events=[]')", "leave it out (set={'trace.drift.events': []})"),
        ("give --yes, or --cluster", "give --yes, or --cluster"),
        ("driftscale traces build --out a; --data 'b c'", "driftscale traces build --out a; data='b c'"),
    ],
)
def test_options_are_arguments_in_the_errors_of_a_call(of_command: str, of_call: str) -> None:
    parameters = inspect.signature(driftscale.run).parameters
    assert in_python(of_command, parameters) == of_call


# -- check and compare --------------------------------------------------------------------------------------


def test_check_has_the_facts_of_the_command() -> None:
    checked = driftscale.check(SMALL, {"round.rounds": 5}, seeds=[0, 1])
    (facts,) = checked.facts
    assert facts["client updates in all"] == 5 * 3 * 2 * 2  # rounds, participants, arms, seeds
    assert list(checked.frame["clients"]) == [12]
    assert re.search(r"client updates in all +60\n", repr(checked))
    assert "<th>clients</th><td>12</td>" in checked._repr_html_()
    assert not Path("runs").exists()


def test_check_counts_the_participants_of_each_pacing_and_knows_no_rounds_of_virtual_time():
    fewer = {"name": "fewer", "pacing": {"kind": "sync", "participants": 2}}
    table = small_table(arm=[{"name": "global"}, fewer], round={"rounds": 4, "participants": 3})
    assert driftscale.check(table).facts[0]["client updates in all"] == 4 * (3 + 2)
    table["round"]["seconds_per_round"] = 60
    (facts,) = driftscale.check(table).facts
    assert facts["virtual seconds of a run"] == 240
    assert "client updates in all" not in facts


def test_compare_takes_results_and_paths() -> None:
    one = driftscale.run(SMALL, {"round.rounds": 2}, out="one", progress=False)
    driftscale.run(SMALL, {"round.rounds": 2, "round.participants": 2}, out="two", progress=False)
    frame = driftscale.compare(one, "two").frame
    assert list(frame["directory"]) == ["one", "one", "two", "two"]
    assert list(frame["round.participants"]) == [3, 3, 2, 2]
    assert list(frame["arm"]) == ["global", "fielding", "global", "fielding"]
    accuracy = frame["mean_accuracy"]
    assert frame["gain_pp"][1] == pytest.approx(100 * (accuracy[1] - accuracy[0]))
    assert frame["difference_pp"][2] == pytest.approx(100 * (accuracy[2] - accuracy[0]))
    shown = driftscale.compare("one", "two")
    assert repr(shown).splitlines()[0].split()[:2] == ["arm", "participants"]
    best, *_ = of_sections([shown.section])
    assert f"\n\n{best}\n" in repr(shown)
    assert shown._repr_html_().startswith(f"<p>{best}</p><p>")
    assert "<table><tr><th>arm</th>" in shown._repr_html_()
    with pytest.raises(InputError, match="a single run directory; compare needs two or more"):
        driftscale.compare("one")


# -- shipped configurations ----------------------------------------------------------------------------------


def test_a_name_is_checked_and_run_and_a_line_says_which_was_taken(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ship(tmp_path_factory.mktemp("package"), monkeypatch, round={"rounds": 1})
    assert [facts["name"] for facts in driftscale.check("few/alpha").facts] == ["few-alpha"]
    assert [facts["name"] for facts in driftscale.check(Path("few")).facts] == ["few-alpha", "few-beta"]
    assert capsys.readouterr().err.splitlines() == [
        "few/alpha: taking the shipped configuration",
        "few: taking the folder of shipped configurations",
    ]
    results = driftscale.run("few/alpha", arms="global", progress=False)
    assert results.path == Path("runs/few-alpha")
    assert capsys.readouterr().err == "few/alpha: taking the shipped configuration\n"
    recorded = json.loads(Path("runs/few-alpha/manifest.json").read_text())["commands"][0]
    assert recorded["arguments"][:2] == ["driftscale.run", "few/alpha"]
    with pytest.raises(
        InputError, match=r"^alpah: no such configuration; .*: few/alpha \(driftscale configs\)"
    ):
        driftscale.run("alpah")


@pytest.mark.parametrize("call", [driftscale.run, driftscale.check])
def test_the_line_is_said_too_where_what_was_taken_cannot_be_read(
    call: Callable[[str], object],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ship(tmp_path_factory.mktemp("package"), monkeypatch)
    Path("small").mkdir()
    with pytest.raises(InputError, match=r"^small: a folder without a configuration"):
        call("small")
    assert capsys.readouterr().err == "small: taking what is here, not the shipped configs/small.toml\n"
