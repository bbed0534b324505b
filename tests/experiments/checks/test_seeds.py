"""What a run refuses may depend on its seed: a check refuses it for any seed, before anything is played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError, InputError
from experiments.build import build_world
from experiments.cli.configurations.check_table import check_members_of
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.members import load_members, read_configuration
from experiments.running.plan import Checker, check
from tests.experiments.running.played import logs, play
from tests.experiments.small import (
    NEVER_AGAIN,
    WINDOWS,
    drifting,
    replay,
    small_table,
    write_idx_folder,
    write_small,
)
from tests.traces.tiny import write_trace_folder

SEEDS = range(8)


def on_file(**changes: Any) -> dict[str, Any]:
    """The small configuration with the trace folder `trace`, of two data steps."""
    trace = {"source": "file", "folder": "trace", "rounds_per_step": 2, "retain_rounds": 2}
    trace |= {"test_on": changes.pop("test_on", "present")}
    table = small_table(round={"participants": 1, **changes.pop("round", {})}, **changes)
    return {**table, "trace": {**trace, "test_share": 0.5}, "arm": table["arm"][:1]}


def write_rare_tests(folder: Path) -> None:
    """Of two samples at the last step, of two labels, each is for tests by an even chance."""
    write_trace_folder(
        folder / "trace",
        {"client": [0] * 6, "label": [0, 0, 0, 0, 1, 2], "sample": range(6), "step": [0] * 4 + [1] * 2},
    )


def write_one_tested(folder: Path) -> None:
    """Of four clients, two hold no test samples at the last step."""
    client, step, split = np.indices((4, 2, 2)).reshape(3, -1)
    kept = (client < 2) | (step == 0) | (split == 0)
    columns = {"client": client, "label": client % 2, "sample": 0 * client, "step": step}
    columns["split"] = np.array(["train", "test"])[split]
    write_trace_folder(folder / "trace", {name: column[kept] for name, column in columns.items()})


def write_rare_observations(folder: Path) -> None:
    """Of three observations of the second day, dealt to two clients, some are for tests."""
    rows = ["here,2021-01-01,x,8", "here,2021-01-01,y,8", "here,2021-01-02,x,1", "here,2021-01-02,y,2"]
    (folder / "labels.csv").write_text("\n".join(["place,day,kind,seen", *rows]) + "\n")
    write_idx_folder(folder / "images")


def tables() -> dict[str, Any]:
    with_split = on_file(round={"evaluate_clients": 1})
    del with_split["trace"]["test_share"]
    observed = {"samples": "observed", "absent": "leave", "clients_per_group": 2, "retain_rounds": 2}
    replayed = replay(trace=observed, round={"participants": 1})
    for key in ("samples_per_step", "test_samples_per_step"):
        del replayed["trace"][key]
    partition = {"kind": "dirichlet", "per": "class", "alpha": 0.2, "min_samples": 14}
    divided = {"source": "digits", "clients": 30, "partition": partition}
    few_tests = {"labels": [0, 1], "clients": 98, "rounds_per_step": 1, "test_on": "next"}
    arriving = {"source": "digits", **few_tests, "partition": "iid", "starts_with": [0.1, 0.5]}
    return {
        "a file without a column split": (write_rare_tests, on_file()),
        "tests on what arrives next": (write_rare_tests, on_file(test_on="next", round={"rounds": 2})),
        "a sample of scored clients": (write_one_tested, with_split),
        "observations that are dealt": (write_rare_observations, replayed),
        "a partition with a minimum": (lambda _: None, {**small_table(), "trace": divided}),
        "a partition that arrives, and few tests": (lambda _: None, {**small_table(), "trace": arriving}),
    }


def refusal(experiment: Experiment, seed: int, data: Path) -> str | None:
    """Why the world of a seed is refused; None if it is not."""
    try:
        build_world(experiment, seed, locator(data, None))
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", tables())
def test_a_check_refuses_a_seed_exactly_if_its_run_would_be_refused(name: str, tmp_path: Path) -> None:
    write, table = tables()[name]
    write(tmp_path)
    why = {seed: refusal(parse_experiment(table, ""), seed, tmp_path) for seed in SEEDS}
    fit = [seed for seed in SEEDS if why[seed] is None]
    assert 0 < len(fit) < len(SEEDS), why
    locate = locator(tmp_path, None)
    check(parse_experiment({**table, "seeds": fit}, ""), locate, scratch=tmp_path)
    for seed in set(SEEDS) - set(fit):
        two = parse_experiment({**table, "seeds": sorted([fit[0], seed])}, "")
        with pytest.raises(InputError) as refused:
            check(two, locate, scratch=tmp_path)
        assert str(refused.value) == (f"seed {seed}: {why[seed]}" if seed > fit[0] else why[seed])


def test_a_run_is_refused_for_a_later_seed_before_any_round(tmp_path: Path) -> None:
    write_one_tested(tmp_path)
    _, table = tables()["a sample of scored clients"]
    why = {seed: refusal(parse_experiment(table, ""), seed, tmp_path) for seed in SEEDS}
    accepted, refused = (
        next(seed for seed in SEEDS if (why[seed] is None) == is_fit) for is_fit in (True, False)
    )
    out = tmp_path / "out"
    table["seeds"] = [accepted, refused]
    with pytest.raises(InputError, match="no scored client holds both a training and a test sample"):
        play(parse_experiment(table, ""), out, tmp_path)
    assert not list(out.glob("*/seed-*"))
    # Nor does it replace the configuration that finished runs are recorded with.
    play(parse_experiment({**table, "seeds": [accepted]}, ""), out, tmp_path)
    recorded, finished = RunDirectory(out).experiment_path.read_bytes(), logs(out)
    with pytest.raises(InputError, match="no scored client"):
        play(parse_experiment(table, ""), out, tmp_path)
    assert (RunDirectory(out).experiment_path.read_bytes(), logs(out)) == (recorded, finished)


def test_a_pattern_that_a_later_seed_lacks_is_refused(tmp_path: Path) -> None:
    trace = {"pattern": "R", "samples_per_step": 2, "rounds_per_step": 1, "concepts": {"kind": "sea"}}
    rounds = {"rounds": 10, "participants": 3, "over_commit": 1, "evaluate_every": 1}
    for last, problem in ((9, None), (10, r'^seed 10: trace.pattern = "R": .*; seed 10 has none$')):
        experiment = drifting(seeds=[0, last], trace=trace, round=rounds, report={"published": {}})
        if problem is None:
            check(experiment, locator(None, None), scratch=tmp_path)
        else:
            with pytest.raises(ConfigurationError, match=problem):
                check(experiment, locator(None, None), scratch=tmp_path)


# -- who is ever online -------------------------------------------------------------------------------------


def with_spells(folder: Path, windows: str, **changes: Any) -> Experiment:
    (folder / "windows.csv").write_text(windows)
    availability = {"kind": "intervals", "windows": "windows.csv"}
    return parse_experiment(small_table(devices={"availability": availability}, **changes), "")


def test_clients_that_are_never_online_are_named_by_a_check_and_by_a_run(tmp_path: Path) -> None:
    """A device with empty intervals only is that of some of the clients of every seed."""
    experiment = with_spells(tmp_path, WINDOWS + "f,10,10,60\n", seeds=[0, 1])
    offline = {}
    for seed in (0, 1):
        world = build_world(experiment, seed, locator(tmp_path, None))
        offline[seed] = np.flatnonzero(world.availability.device_of == 5)
    notes: list[str] = []
    Checker(notes.append).check(experiment, locator(tmp_path, None), scratch=tmp_path)
    assert all(0 < len(ids) <= 3 for ids in offline.values())
    assert notes == [
        "clients that are never online, by devices.availability, take no part: "
        + "; ".join(
            f"seed {seed}: {len(ids)} of 12 ({', '.join(map(str, ids))})" for seed, ids in offline.items()
        )
    ]
    story = play(experiment, tmp_path / "out", tmp_path)
    assert [note for kind, *note in story.told if kind == "note"] == [notes]


def test_a_fleet_that_is_never_online_is_refused_whichever_its_seed(tmp_path: Path) -> None:
    """Of two clients both draw the device without any interval with some seed, but not with each."""
    experiment = with_spells(
        tmp_path,
        NEVER_AGAIN + "c,1,1\nd,1,1\n",
        seeds=list(range(8)),
        trace={"clients": 2},
        round={"participants": 1, "min_online": 1},
    )
    with pytest.raises(
        ConfigurationError, match=r"^seed [1-7]: devices.availability: none of the 2 clients is ever"
    ):
        check(experiment, locator(tmp_path, None), scratch=tmp_path)


def test_a_step_at_which_only_clients_that_are_never_online_hold_data_is_refused(tmp_path: Path) -> None:
    """Three clients hold data at the first step, and one at the last, whose device may have no spell."""
    client, step = np.array([0, 1, 2] * 4 + [0] * 8), np.array([0] * 12 + [1] * 8)
    split = np.array((["train"] * 6 + ["test"] * 6) + ["train", "test"] * 4)
    columns = {"client": client, "label": 0 * client, "sample": 0 * client, "step": step, "split": split}
    write_trace_folder(tmp_path / "trace", columns)
    (tmp_path / "windows.csv").write_text("device_id,start_s,end_s\na,0,9999999\nb,5,5\n")
    table = on_file(devices={"availability": "windows.csv"})
    del table["trace"]["test_share"]
    problem = r"at data step 1, which round 2 begins, all clients that hold .* are never online, by dev.* \(0"
    locate, ends = locator(tmp_path, None), set()
    for seed in SEEDS:
        world = build_world(parse_experiment({**table, "seeds": [seed]}, ""), seed, locate)
        online = world.availability.online(np.arange(3), 0.0)
        experiment = parse_experiment({**table, "seeds": [seed]}, "")
        ends.add(bool(online[0]))
        if online[0]:
            check(experiment, locate, scratch=tmp_path)
        else:
            with pytest.raises(ConfigurationError, match=problem if online.any() else "is ever online"):
                check(experiment, locate, scratch=tmp_path)
    assert ends == {True, False}


def test_cells_of_one_world_check_its_seeds_once_and_name_those_never_online_once(tmp_path: Path) -> None:
    experiment = with_spells(tmp_path, WINDOWS + "f,10,10,60\n", seeds=[0, 1])
    notes: list[str] = []
    checker = Checker(notes.append)
    for participants in (2, 3):
        rounds = experiment.round.model_copy(update={"participants": participants})
        checker.check(
            experiment.model_copy(update={"round": rounds}), locator(tmp_path, None), scratch=tmp_path
        )
    assert len(notes) == 1


def test_the_facts_of_a_check_have_its_warnings(tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_text(WINDOWS + "f,10,10,60\n")
    config = write_small(tmp_path, seeds=[0], devices={"availability": "windows.csv"})
    notes: list[str] = []
    [facts] = check_members_of(load_members([read_configuration(config)]), notes.append)
    assert facts["warnings"] == "; ".join(notes)
    assert "never online" in notes[0]
