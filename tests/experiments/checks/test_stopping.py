"""Which arms whose clients stop early are refused before any run, and in what words."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from executor.training.held_out import HeldOut
from experiments.build import World, build_world
from experiments.checks import arms as arms_module
from experiments.config import Experiment
from experiments.locating import locator
from tests.experiments.small import small
from traces.trace import TraceStream

STOPPING = ["early_stopping", "sgd"]
EPOCHS = {"local_epochs": 3}
NAMED = r"solver \[early_stopping, sgd\]"
TWICE = [{"kind": "early_stopping"}, {"kind": "early_stopping", "gamma": 0.5}, {"kind": "sgd"}]
ALTERNATING = [{"kind": "personal_layers", "alternate": True}, *TWICE[1:]]


def an_experiment(arm: dict[str, Any], **tables: Any) -> Experiment:
    whole = {"name": "only", "solver": STOPPING, "training": EPOCHS, **arm}
    return small(trace={"clients": 6}, arm=[whole], **tables)


@cache
def world_of_all() -> World:
    """The arm, of which the world knows nothing, may be any."""
    return build_world(an_experiment({}), 0, locator(None, None))


def check(experiment: Experiment) -> None:
    arms_module.check_arms(experiment, ["only"], world_of_all())


@pytest.mark.parametrize(
    ("arm", "tables", "problem"),
    [
        (
            {},
            {"devices": {"time_model": "fedscale"}},
            rf'devices\.time_model = "fedscale": takes no time to predict samples, as the {NAMED} does after '
            r'each epoch; set devices\.time_model = "driftscale"',
        ),
        (
            {"training": {"local_steps": 7}},
            {},
            rf"{NAMED}: stops after an epoch, and training\.local_steps = 7 counts steps; set "
            r"training\.local_epochs, the most epochs of a visit",
        ),
        (
            {"adaptation": "tuned", "training": {**EPOCHS, "last": "short"}},
            {},
            r"training\.last = 'short': what adaptation = 'tuned' costs is counted over all that a client "
            rf"holds, and the {NAMED} holds some of that out; set last = 'filled'",
        ),
        (
            {"schedules": [{"kind": "by_cluster", "clusters": {"0": {"local_steps": 3}}}]},
            {},
            rf"schedule 'by_cluster': sets local_steps, and the {NAMED} decides how many steps a task takes; "
            r"take one of the two",
        ),
        (
            {"adaptation": "alone"},
            {},
            rf"adaptation = 'alone': trains for so many steps, and the {NAMED} decides how many a task "
            r"takes; leave the rule out",
        ),
        (
            {"solver": TWICE},
            {},
            r"solver: EarlyStopping and EarlyStopping both decide when a task stops; take one of the two",
        ),
        (
            {"solver": ALTERNATING, "training": {**EPOCHS, "model": {"kind": "mlp", "hidden": [4]}}},
            {},
            r"solver: PersonalLayers, with these settings, must know how many steps a task takes, which "
            r"EarlyStopping decides only after each epoch; take one of the two",
        ),
    ],
)
def test_clients_that_stop_early_do_not_fit_what_must_know_their_steps(
    arm: dict[str, Any], tables: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^arm 'only': {problem}$"):
        check(an_experiment(arm, **tables))


@pytest.mark.parametrize(
    "arm",
    [
        {"training": {}, "solver": [{"kind": "early_stopping", "epochs": 4}, "sgd"]},
        {"schedules": [{"kind": "by_cluster", "clusters": {"0": {"batch_size": 2}}}]},
        {"pacing": "buffered", "aggregator": "fedbuff"},
        {"solver": ["ditto", *STOPPING], "clusterer": "fielding"},
        {"solver": ["early_stopping", "adam"], "training": {**EPOCHS, "last": "short"}},
    ],
)
def test_clients_that_stop_early_fit_everything_else(arm: dict[str, Any]) -> None:
    check(an_experiment(arm))


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("held_out", 0, "greater than 0"),
        ("held_out", 1, "less than 1"),
        ("gamma", 0, "greater than 0"),
        ("epochs", 0, "greater than or equal to 1"),
        ("first", "none", "'measured' or 'infinite'"),
    ],
)
def test_settings_out_of_range_are_refused_in_one_line(key: str, value: object, rule: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"^small: arm\.only\.solver\.0\.{key} = {value!r}: input should be {rule}$"
    ):
        an_experiment({"solver": [{"kind": "early_stopping", key: value}, "sgd"]})


@pytest.mark.parametrize("last", ["filled", "short"])
@pytest.mark.parametrize("pacing", ["sync", "fixed"])
def test_a_deadline_is_refused_unless_a_client_can_make_an_epoch_by_then(pacing: str, last: str) -> None:
    """Twice a model of 650 parameters, and an epoch over what is not held out at first, in batches of 4.

    All devices are alike, so that the fastest client is the one with the fewest samples to train on.
    """

    def paced(deadline_s: float) -> Experiment:
        key = {"sync": "deadline_s", "fixed": "duration_s"}[pacing]
        return an_experiment(
            {"pacing": {"kind": pacing, key: deadline_s}, "training": {**EPOCHS, "last": last}}
        )

    world = world_of_all()
    stream, fleet, clients = TraceStream(world.trace), world.fleet, np.arange(6)
    stream.advance_to_round(0)
    held, held_out = stream.held(clients, "train"), HeldOut(0.3, world.trace, world.streams)
    trained = held.counts() - [flags.sum() for flags in held_out.split(held)]
    samples = trained if last == "short" else -(-trained // 4) * 4
    transfers_s = 2600 / fleet.download_bytes_per_s + 2600 / fleet.upload_bytes_per_s + 2 * fleet.latency_s
    fastest_s = float((transfers_s + samples * fleet.seconds_per_sample).min())
    problem = (
        rf"^arm 'only': pacing = '{pacing}': its {0.999 * fastest_s:g} s end before any client has done one "
        rf"epoch, which takes the fastest one {fastest_s:.4g} s with its transfers; give it more time, or "
        r"lower devices\.model_factor$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        check(paced(0.999 * fastest_s))
    check(paced(1.001 * fastest_s))
    assert len(set(samples.tolist())) > 1  # so that there are clients that cannot make it


def test_a_deadline_is_compared_with_what_the_solver_transfers_and_computes() -> None:
    """What stays with a client is not sent; `feddc` sends two models either way; Ditto trains two."""

    def fastest_s(*rules: str, **arm: Any) -> float:
        key = {"training": {**EPOCHS, "model": {"kind": "mlp", "hidden": [4]}}, "solver": [*rules, *STOPPING]}
        with pytest.raises(ConfigurationError) as refused:
            check(an_experiment({"pacing": {"kind": "fixed", "duration_s": 1e-6}, **key, **arm}))
        return float(str(refused.value).partition("takes the fastest one ")[2].partition(" s")[0])

    alone = fastest_s()
    assert fastest_s("personal_layers") < alone
    assert fastest_s("feddc", aggregator="feddc") > alone
    assert fastest_s("ditto") > alone
