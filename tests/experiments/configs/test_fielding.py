"""The small configurations of Fielding compare what their comments say."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import experiments
from coordinator.federation.method import Hear
from experiments.reading import load_experiment, read_table

FOLDER = Path(experiments.__file__).parent / "configs" / "fielding"


def test_the_sweep_of_who_is_heard_has_every_setting() -> None:
    assert sorted(read_table(FOLDER / "hear.toml")["sweep"]["round.hear"]) == sorted(get_args(Hear))


def test_arms_that_follow_participants_differ_from_their_namesakes_in_nothing_else() -> None:
    arms = {arm["name"]: arm for arm in load_experiment(FOLDER / "participants.toml").resolved()["arm"]}
    for name in ("moves", "fielding"):
        drifted, participants = (dict(arms[arm]["clusterer"]) for arm in (name, f"{name}-participants"))
        assert (drifted.pop("follow"), participants.pop("follow")) == ("drifted", "participants")
        assert drifted == participants
