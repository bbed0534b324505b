"""What parts reject before a run begins."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.aggregators import AGGREGATORS, sample_share
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.clusterers import CLUSTERERS
from coordinator.detectors.stepd import Stepd
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.schedules import SCHEDULES
from coordinator.selectors import SELECTORS
from coordinator.view import Part, RunFacts
from emulator.errors import ConfigurationError
from experiments.build import build_parts, build_world
from experiments.checks import arms as arms_module
from experiments.config import parse_experiment
from experiments.locating import locator
from tests.experiments.small import DRIFTING, SMALL, small
from traces.trace import Trace


def with_aggregator(monkeypatch: pytest.MonkeyPatch, part: Part) -> Callable[[], None]:
    """A function that checks an arm with this aggregator, of 3 participants and 4 rounds of 12 clients."""
    experiment = small(trace={"clients": 12}, round={"participants": 3, "rounds": 4})

    world = build_world(experiment, 0, locator(None, None))

    def parts(*of: Any) -> Any:
        return replace(build_parts(*of), aggregator=part)

    monkeypatch.setattr(arms_module, "build_parts", parts)
    return lambda: arms_module.check_arms(experiment, [experiment.arm[0].name], world)


def test_a_metric_that_nobody_computes_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Needy(FedAvg):
        needs = frozenset({"loss_after", "loss_before"})

    problem = r"Needy needs the metric 'loss_after' of training, which .*; choices: .*, step_norm$"
    with pytest.raises(ConfigurationError, match=problem):
        with_aggregator(monkeypatch, Needy(FedAvgSettings()))()


def test_needs_that_are_no_set_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wordy(FedAvg):
        needs: Any = "loss_before"

    problem = r"Wordy\.needs is 'loss_before': must be a property that returns a frozenset of metrics"
    with pytest.raises(ConfigurationError, match=problem):
        with_aggregator(monkeypatch, Wordy(FedAvgSettings()))()


def test_a_part_can_refuse_a_run_by_its_rounds_participants_and_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Choosy(FedAvg):
        def check_run(self, run: RunFacts) -> None:
            raise ConfigurationError(f"{run.num_clients} clients, {run.rounds} rounds, {run.participants}")

    with pytest.raises(ConfigurationError, match=r"^arm '\w+': 12 clients, 4 rounds, 3$"):
        with_aggregator(monkeypatch, Choosy(FedAvgSettings()))()


@pytest.mark.parametrize(
    ("arm", "problem"),
    [
        (
            {"adaptation": "tuned", "clusterer": "aue", "memory": "claimed"},
            r"adaptation = 'tuned': adapts the one model .* clusterer = 'aue' combines several; .*'prior'",
        ),
        (
            {"adaptation": "alone", "clusterer": "ifca"},
            r"adaptation = 'alone': no models are federated, and clusterer = 'ifca' makes some",
        ),
        (
            {"adaptation": "alone", "solver": "adam"},
            r"Alone: to keep [\d,]+ numbers for each of 12 clients takes 0\.0 GiB .*; set round\.evaluate",
        ),
    ],
)
def test_an_adaptation_that_does_not_fit_its_arm_or_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, arm: dict[str, Any], problem: str
) -> None:
    experiment = small(trace={"clients": 12}, arm=[{"name": "only", **arm}])
    world = build_world(experiment, 0, locator(None, None))
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 40_000)
    with pytest.raises(ConfigurationError, match=f"^arm 'only': {problem}"):
        arms_module.check_arms(experiment, ["only"], world)


PLAIN = {"kind": "transformed", "rotations": 4}
WITH_CONTEXT = {"training": {"model": {"kind": "context"}}}
INSIDE = "takes samples with the context of their client, which the model of an arm alone has; take another"


@pytest.mark.parametrize(
    ("table", "arm", "problem"),
    [
        (
            DRIFTING,
            {"adaptation": PLAIN},
            "adaptation = 'transformed': rotations: turn images, of shape (height, width) or (channels, "
            "height, width), and samples here have shape (2,)",
        ),
        (
            DRIFTING,
            {"adaptation": {"kind": "transformed", "shifts": [1]}, "clusterer": "aue", "memory": "claimed"},
            "adaptation = 'transformed': adapts the one model that serves a client, and clusterer = 'aue' "
            "combines several; choices beside it: 'none', 'prior', 'relabelled'",
        ),
        (
            SMALL,
            {"training": {"model": {"kind": "context", "inner": "cnn"}}},
            "model 'context': inner = 'cnn' takes samples of their own shape, and no context beside them; "
            "choices: 'linear', 'mlp'",
        ),
        (
            SMALL,
            {**WITH_CONTEXT, "adaptation": PLAIN},
            "adaptation = 'transformed': model = 'context' has samples read with the context of their "
            "client, and an arm has one way of reading; set adaptation = 'none'",
        ),
        (
            SMALL,
            {"training": {"model": {"kind": "masked", "inner": "context"}}},
            f"model = 'masked': inner = 'context': {INSIDE} one, such as 'mlp'",
        ),
        (
            SMALL,
            {"training": {"model": {"kind": "mixture", "inner": "context"}}},
            f"model = 'mixture': inner = 'context': {INSIDE} one, such as 'mlp'",
        ),
        (
            SMALL,
            {"clusterer": "fielding", "representation": {"kind": "embedding", "model": "mixture"}},
            f"model = 'mixture': {INSIDE} one, such as 'mlp'",
        ),
        (
            SMALL,
            {**WITH_CONTEXT, "solver": ["ditto", "sgd"]},
            "model = 'context': the solver [ditto, sgd] makes personal parameters, and only one of the two "
            "can say what a client uses; take another model",
        ),
        *(
            (
                SMALL,
                {"adaptation": adaptation, "solver": [rule, "sgd"], "training": {"model": "mlp"}},
                f"adaptation = '{adaptation['kind']}': the solver [{rule}, sgd] makes personal parameters, "
                f"and only one of the two can say what a client uses; set adaptation = 'none'",
            )
            for adaptation in (PLAIN, {"kind": "relabelled", "train": True})
            for rule in ("ditto", "apfl", "personal_layers")
        ),
    ],
)
def test_ways_that_do_not_fit_samples_model_or_parts_are_refused(
    table: dict[str, Any], arm: dict[str, Any], problem: str
) -> None:
    whole = {**table, "report": {"window": 1}, "arm": [{"name": "only", **arm}]}
    experiment = parse_experiment(whole, "x.toml")
    world = build_world(experiment, 0, locator(None, None))
    with pytest.raises(ConfigurationError, match=f"^arm 'only': {re.escape(problem)}$"):
        arms_module.check_arms(experiment, ["only"], world)


@pytest.mark.parametrize(
    "arm",
    [
        {"adaptation": {"kind": "transformed", "quantiles": True}},
        {"adaptation": {"kind": "relabelled", "by": "class_means"}},
        WITH_CONTEXT,
    ],
)
def test_whole_numbers_have_no_ways_of_features(arm: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = small(arm=[{"name": "only", **arm}])
    world = build_world(experiment, 0, locator(None, None))
    monkeypatch.setattr(Trace, "integers", True)
    with pytest.raises(ConfigurationError, match=r"^arm 'only': .*whole numbers, such as tokens, which"):
        arms_module.check_arms(experiment, ["only"], world)


@pytest.mark.parametrize(
    "arm",
    [
        {"adaptation": PLAIN},
        {"adaptation": {"kind": "transformed", "channels": True, "by": "class_means"}, "clusterer": "ifca"},
        {"adaptation": {"kind": "relabelled", "train": True}, "clusterer": "fielding"},
        WITH_CONTEXT,
        {
            **WITH_CONTEXT,
            "clusterer": "fielding",
            "representation": {"kind": "embedding", "model": "context"},
        },
    ],
)
def test_ways_that_fit_are_taken(arm: dict[str, Any]) -> None:
    """Also where the reference model is that of the arm: it reads samples with a context of zeros."""
    experiment = small(arm=[{"name": "only", **arm}])
    arms_module.check_arms(experiment, ["only"], build_world(experiment, 0, locator(None, None)))


class Pieces(Fixed):
    """Of a round with several server steps: only what is refused before a run looks at it."""

    whole_rounds = False
    buffer, concurrency = 10, 13


def beside_pieces(monkeypatch: pytest.MonkeyPatch, pacing: type[Pacing] = Pieces, **arm: Any) -> None:
    """Check an arm with these parts, of 12 clients, beside a pacing whose rounds are not whole."""
    experiment = small(trace={"clients": 12}, arm=[{"name": "only", **arm}])
    world = build_world(experiment, 0, locator(None, None))

    def parts(*of: Any) -> Any:
        built = build_parts(*of)
        return replace(built, pacing=pacing(FixedSettings(duration_s=60), CohortSize(10, 1.3)))

    monkeypatch.setattr(arms_module, "build_parts", parts)
    arms_module.check_arms(experiment, ["only"], world)


@pytest.mark.parametrize(
    ("arm", "part"),
    [
        ({"selector": "oort"}, "Oort"),
        ({"clusterer": "cfl"}, "Cfl"),
        ({"clusterer": {"kind": "auxo", "split_rounds": [1], "min_participants": 2}}, "Auxo"),
        ({"clusterer": "feddrift", "memory": "claimed"}, "FedDrift"),
        ({"clusterer": "feddrift_c", "memory": "claimed"}, "FedDriftC"),
        ({"clusterer": "feddrift_eager", "memory": "claimed"}, "FedDriftEager"),
        ({"clusterer": {"kind": "aue", "weigh": "updates"}, "memory": "claimed"}, "Aue with these settings"),
        ({"clusterer": {"kind": "fielding", "trigger": "learned"}}, "Fielding with these settings"),
        ({"clusterer": {"kind": "fielding", "reclustered_init": "initial"}}, "Fielding with these settings"),
        ({"schedules": "adaptive_lr"}, "AdaptiveLearningRate"),
        ({"adaptation": "alone"}, "Alone"),
    ],
)
def test_a_part_that_needs_whole_rounds_is_refused_beside_a_pacing_without_them(
    monkeypatch: pytest.MonkeyPatch, arm: dict[str, Any], part: str
) -> None:
    problem = (
        rf"^arm 'only': {part}: needs rounds of one dispatch and one server step each, unlike those of "
        r"pacing = 'sync'; choices beside it: 'fixed', 'sync'$"  # of a configuration that says sync
    )
    with pytest.raises(ConfigurationError, match=problem):
        beside_pieces(monkeypatch, **arm)


@pytest.mark.parametrize(
    "arm",
    [
        {"clusterer": "fielding", "aggregator": "fedyogi", "selector": "distance"},
        {"clusterer": "ifca", "selector": "power_of_choice", "aggregator": "qfedavg"},
        {"clusterer": "aue", "memory": "claimed", "aggregator": "median"},
        {"clusterer": "driftsurf", "memory": "claimed", "aggregator": "trimmed_mean"},
        {"clusterer": {"kind": "flexcfl", "num_groups": 2}, "adaptation": "tuned"},
        {"clusterer": "hypcluster", "aggregator": {"kind": "krum", "byzantine": 0.3}},
    ],
)
def test_parts_that_count_neither_rounds_nor_steps_have_any_pacing(
    monkeypatch: pytest.MonkeyPatch, arm: dict[str, Any]
) -> None:
    beside_pieces(monkeypatch, **arm)


def test_parts_that_need_whole_rounds_say_why() -> None:
    for registry in (AGGREGATORS, CLUSTERERS, SCHEDULES, SELECTORS):
        for name, part in registry:
            texts = [text for base in part.__mro__ if (text := base.__dict__.get("__doc__"))]
            says = any("needs whole rounds" in " ".join(text.split()) for text in texts)
            assert says or not part.needs_whole_rounds, f"{name} does not say why it needs whole rounds"


def test_krum_is_refused_where_a_step_has_too_few_updates_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 10 updates 4 may be false: 2 x 4 + 3 = 11.
    problem = (
        r"^arm 'only': aggregator\.byzantine = 0\.4: of the 10 updates of a server step 4 may be false, "
        r"which takes at least 11 updates; raise pacing\.buffer, or lower byzantine$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        beside_pieces(monkeypatch, aggregator={"kind": "krum", "byzantine": 0.4})


def test_visits_out_at_once_whose_models_do_not_fit_into_memory_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Many(Pieces):
        concurrency = 5000

    problem = (
        r"^arm 'only': pacing\.concurrency = 5000: to keep [\d,]+ numbers for each of the visits takes "
        r"[\d.]+ GiB of memory, and 0\.0 GiB are free; lower it, or take a smaller model$"
    )
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 4_000_000)
    beside_pieces(monkeypatch)
    with pytest.raises(ConfigurationError, match=problem):
        beside_pieces(monkeypatch, Many)


def test_a_run_is_checked_with_the_participants_and_the_buffer_of_its_pacing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Choosy(Pieces):
        def check_run(self, run: RunFacts) -> None:
            raise ConfigurationError(f"{run.participants} participants, a buffer of {run.buffer}")

    with pytest.raises(ConfigurationError, match=r"10 participants, a buffer of 10$"):
        beside_pieces(monkeypatch, Choosy)


# -- solvers with memory -----------------------------------------------------------------------------------


def check_arm(arm: dict[str, Any], **changes: Any) -> None:
    experiment = small(**changes, arm=[{"name": "only", **arm}])
    world = build_world(experiment, 0, locator(None, None))
    arms_module.check_arms(experiment, ["only"], world)


SCAFFOLD, FEDDYN = ["scaffold", "sgd"], ["feddyn", "sgd"]


class Sharing(FedAvg):
    """It must have a number of a rule, and reads nothing that the rule keeps."""

    @property
    def shares(self) -> dict[str, float]:
        return {"feddyn.alpha": 0.5}


@pytest.mark.parametrize(
    ("arm", "problem"),
    [
        (
            {"solver": SCAFFOLD},
            r"solver \[scaffold, sgd\]: reads 'scaffold\.control', which aggregator = 'fedavg' does not send "
            r"along with the models; aggregators that do: 'scaffold'",
        ),
        (
            {"aggregator": "scaffold"},
            r"aggregator = 'scaffold': sends 'scaffold\.control' along with the models, which no rule of the "
            r"solver \[sgd\] reads; put the local rule that does into the solver",
        ),
        (
            {"solver": ["scaffold", "adam"], "aggregator": "scaffold"},
            r"solver: scaffold takes a client's mean step for its mean gradient, .* under Adam; end the "
            r"solver with 'sgd'.*",
        ),
        (
            {"solver": FEDDYN},
            r"solver \[feddyn, sgd\]: feddyn\.alpha = 0\.01 must be a number of the aggregator, too, which "
            r"aggregator = 'fedavg' does not have; aggregators that do: 'feddyn'",
        ),
        (
            {"solver": ["ditto", "sgd"], "aggregator": "feddyn"},
            r"aggregator = 'feddyn': averages 'feddyn\.own' over clients, which the solver \[ditto, sgd\] "
            r"does not keep until a model ends; put the local rule that does into the solver",
        ),
        (
            {"solver": FEDDYN, "aggregator": {"kind": "feddyn", "alpha": 0.02}},
            r"solver \[feddyn, sgd\]: feddyn\.alpha = 0\.01, and alpha = 0\.02 of aggregator = 'feddyn'; "
            r"must be the same number",
        ),
        (
            {"aggregator": f"{__name__}:Sharing"},
            r"aggregator = '.*Sharing': alpha = 0\.5 is a number that it shares with the local rule "
            r"'feddyn', which solver \[sgd\] does not have; put it into the solver",
        ),
        (
            {"solver": FEDDYN, "adaptation": "alone"},
            r"adaptation = 'alone': no models are federated, and the solver \[feddyn, sgd\] shares "
            r"'feddyn\.alpha' with an aggregator",
        ),
        (
            {"solver": FEDDYN, "aggregator": "feddyn", "pacing": "buffered"},
            r"FedDyn: needs rounds of one dispatch and one server step each, unlike those of pacing = "
            r"'buffered'; choices beside it: 'fixed', 'sync'",
        ),
        (
            {"solver": ["feddc", "sgd"]},
            r"solver \[feddc, sgd\]: reads 'feddc\.gradients', which aggregator = 'fedavg' does not send "
            r"along with the models; aggregators that do: 'feddc'",
        ),
        (
            {"solver": "adam", "aggregator": "fednova"},
            r"FedNova: needs the metric 'step_norm', which the steps of the solver \[adam\] do not have; "
            r"those of 'sgd' have it, also behind rules that leave gradients as they are, or pull, as "
            r"'fedprox' does",
        ),
        (
            {"solver": SCAFFOLD, "aggregator": "scaffold", "pacing": "buffered"},
            r"Scaffold: needs rounds of one dispatch and one server step each, unlike those of pacing = "
            r"'buffered'; choices beside it: 'fixed', 'sync'",
        ),
        (
            {"solver": SCAFFOLD, "aggregator": "scaffold", "adaptation": "alone"},
            r"adaptation = 'alone': no models are federated, and the solver \[scaffold, sgd\] reads what an "
            r"aggregator sends along with them",
        ),
        (
            {"solver": ["ditto", "sgd"], "adaptation": "tuned"},
            r"adaptation = 'tuned': the solver \[ditto, sgd\] makes personal parameters, and only one of the "
            r"two can say what a client uses; set adaptation = 'none'",
        ),
        (
            {"solver": ["apfl", "sgd"], "adaptation": "prior"},
            r"adaptation = 'prior': the solver \[apfl, sgd\] makes personal parameters, .*; set adaptation = "
            r"'none'",
        ),
        (
            {"solver": ["ditto", "sgd"], "clusterer": "aue", "memory": "claimed"},
            r"solver \[ditto, sgd\]: makes personal parameters of the one model that serves a client, and "
            r"clusterer = 'aue' combines several",
        ),
        (
            {
                "solver": ["personal_layers", *SCAFFOLD],
                "aggregator": "scaffold",
                "training": {"model": {"kind": "mlp", "hidden": [4]}},
            },
            r"solver: one rule reads 'scaffold\.control', which is of all parameters of the model, and "
            r"another leaves 50 of them with the client; take one of the two",
        ),
        (
            {"solver": ["apfl", "ditto", "sgd"]},
            r"solver: Apfl and Ditto both make the parameters that a client uses itself; take one of the two",
        ),
        (
            {"solver": ["personal_layers", "sgd"]},
            r"solver: personal_layers\.keep = 'head' names all trained tensors of the model; must leave some "
            r"to send, and keep some; tensors: .*weight, .*bias",
        ),
    ],
)
def test_a_solver_that_does_not_fit_its_arm_is_refused_in_one_line(arm: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^arm 'only': {problem}$") as caught:
        check_arm(arm)
    assert "\n" not in str(caught.value)


class Averaging(FedAvg):
    """It reads a slot that no rule keeps until the model ends."""

    averages = frozenset({"ditto.own"})


class Hasty(Averaging):
    averages = frozenset({"scaffold.own"})
    broadcasts = frozenset({"scaffold.control"})


def test_an_aggregator_that_reads_memory_between_versions_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must declare needs_whole_rounds = True"):
        check_arm({"solver": SCAFFOLD, "aggregator": f"{__name__}:Hasty"})


def test_an_aggregator_that_averages_what_no_rule_keeps_so_long_is_refused() -> None:
    problem = (
        r"averages 'ditto\.own' over clients, which the solver \[ditto, sgd\] does not keep until a model"
    )
    with pytest.raises(ConfigurationError, match=problem):
        check_arm({"solver": ["ditto", "sgd"], "aggregator": f"{__name__}:Averaging"})


@pytest.mark.parametrize(
    "arm",
    [
        {"solver": FEDDYN, "aggregator": "feddyn"},
        {"solver": ["feddyn", "adam"], "aggregator": "feddyn", "clusterer": "ifca"},
        {"solver": ["ditto", "feddc", "sgd"], "aggregator": "feddc"},
        {"solver": ["fedprox", "ditto", {"kind": "sgd", "momentum": 0.9}], "aggregator": "fednova"},
        {"solver": "sgd", "aggregator": "fednova", "pacing": "buffered"},
        {"solver": SCAFFOLD, "aggregator": "scaffold"},
        {"solver": SCAFFOLD, "aggregator": "scaffold", "adaptation": "tuned"},
        {"solver": SCAFFOLD, "aggregator": "scaffold", "pacing": {"kind": "fixed", "duration_s": 60}},
        {"solver": SCAFFOLD, "aggregator": "scaffold", "clusterer": "fielding"},
        {"solver": ["ditto", "sgd"], "pacing": "buffered"},
        {"solver": ["ditto", "sgd"], "clusterer": "feddrift", "memory": "claimed"},
        {"solver": ["apfl", "adam"], "clusterer": "ifca"},
        {"solver": ["ditto", "scaffold", "sgd"], "aggregator": "scaffold"},
        {"solver": ["fedprox", "apfl", "sgd"]},
    ],
)
def test_solvers_with_memory_fit_every_arm_that_can_serve_them(arm: dict[str, Any]) -> None:
    check_arm(arm)


@pytest.mark.parametrize(
    ("arm", "width", "clients", "changes"),
    [
        # Linear models of 64 x 10 + 10 parameters. Of 12 clients, 4 rounds of 3 participants reach all.
        ({"solver": ["ditto", "sgd"]}, "650", 12, {}),
        ({"solver": ["ditto", "adam"]}, "1,951", 8, {"trace": {"clients": 8}}),
        ({"solver": ["apfl", "sgd"]}, "650", 6, {"round": {"rounds": 2, "over_commit": 1}}),
        ({"solver": ["apfl", "sgd"]}, "650", 8, {"round": {"rounds": 2, "over_commit": 1.3}}),
        ({"solver": ["apfl", "sgd"]}, "650", 12, {"round": {"rounds": 2, "seconds_per_round": 60.0}}),
    ],
)
def test_a_memory_that_does_not_fit_is_refused_with_the_clients_and_the_parameters(
    monkeypatch: pytest.MonkeyPatch, arm: dict[str, Any], width: str, clients: int, changes: dict[str, Any]
) -> None:
    needed = 4 * int(width.replace(",", "")) * clients
    problem = (
        rf"^arm 'only': solver: remembers {width} numbers of each of up to {clients} clients, for a model of "
        r"650 parameters, which takes 0\.0 GiB of memory, and 0\.0 GiB are free; take fewer clients or "
        r"rounds, or a smaller model$"
    )
    monkeypatch.setattr(arms_module, "available_bytes", lambda: needed - 1)
    with pytest.raises(ConfigurationError, match=problem):
        check_arm(arm, **changes)
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 10**9)
    check_arm(arm, **changes)


def checked(**tables: Any) -> None:
    """Check the first arm of a small experiment with these tables."""
    experiment = small(**tables)
    world = build_world(experiment, 0, locator(None, None))
    arms_module.check_arms(experiment, [experiment.arm[0].name], world)


SWAPPED: dict[str, Any] = {
    "changes": [{"what": {"swap": [[3, 8]]}, "on": "arrivals", "clients": {"share": 0.5}, "at_step": 1}]
}


@pytest.mark.parametrize(
    ("trace", "detection", "problem"),
    [
        (SWAPPED, {"first_round": 99}, r"detection\.first_round = 99: must be below round\.rounds = "),
        (SWAPPED, {"positive": [99, 100]}, r"detection\.positive = 99: must be below round\.rounds = "),
        (
            SWAPPED,
            {"positive": {"rotate": [1, 2]}},
            r"detection\.positive\.rotate: the trace has no drift of that kind; it has labels, swap",
        ),
    ],
)
def test_detection_that_does_not_fit_the_trace_or_the_run_is_refused(
    trace: dict[str, Any], detection: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        checked(trace=trace, detection=detection)


def test_detection_without_a_truth_is_refused() -> None:
    experiment = small(detection={})
    unknowing: Any = SimpleNamespace(drifts=None)
    with pytest.raises(ConfigurationError, match=r"\[detection\]: this trace does not tell which clients"):
        arms_module.refuse_detection_without_truth(experiment, unknowing)
    endless: Any = SimpleNamespace(drifts=SimpleNamespace(step=range(2**22 + 1)))
    with pytest.raises(ConfigurationError, match=r"4,194,305 drifts.* a log records at most 4,194,304"):
        arms_module.refuse_detection_without_truth(experiment, endless)


SWEPT: dict[str, Any] = {"jump": {"kind": "ddm", "thresholds": [2, 3]}}
FAR: dict[str, Any] = {"far": {"kind": "distance", "thresholds": [0.1, 0.2]}}
NEWS: dict[str, Any] = {"news": {"kind": "stepd", "thresholds": [0.01, 0.05]}}
GROUPS: dict[str, Any] = {"kind": "drift_groups", "groups": {"sudden": ["jump"]}}


ONE: dict[str, Any] = {"kind": "drift_groups", "groups": {"sudden": ["jump@2"]}}


@pytest.mark.parametrize(
    ("arm", "curve"),
    [
        ({"detectors": FAR, "clusterer": "fielding"}, "far"),
        ({"detectors": NEWS, "schedules": ["slowness"]}, "news"),
        ({"detectors": SWEPT, "clusterer": GROUPS}, "jump"),
        ({"detectors": SWEPT, "clusterer": ONE}, "jump"),
    ],
)
def test_thresholds_that_would_change_each_other_are_refused(arm: dict[str, Any], curve: str) -> None:
    problem = (
        rf"^arm 'a': detectors\.{curve}: what it flags may change the run, so thresholds cannot share an "
        rf"arm; leave out thresholds, and play each in an arm of its own$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        checked(arm=[{"name": "a", **arm}], trace=SWAPPED, detection={})


@pytest.mark.parametrize("other", ["eddm", {"kind": "ddm", "threshold": 2, "signal": "losses"}])
def test_names_of_thresholds_are_of_one_detector(other: Any) -> None:
    detectors = {"x@1": {"kind": "ddm", "threshold": 1}, "x@2": other}
    with pytest.raises(
        ConfigurationError, match=r"detectors: x@1, x@2 are named as one at several thresholds"
    ):
        checked(arm=[{"name": "a", "detectors": detectors}], trace=SWAPPED, detection={})


def test_the_threshold_in_a_name_is_that_of_the_detector() -> None:
    detectors = {f"x@{named}": {"kind": "ddm", "threshold": named + 0.5} for named in (1, 2)}
    with pytest.raises(ConfigurationError, match=r"detectors\.x@1: is named as one at .* 1, and has 1\.5"):
        checked(arm=[{"name": "a", "detectors": detectors}], trace=SWAPPED, detection={})


def test_thresholds_fit_an_arm_in_which_nothing_depends_on_their_flags() -> None:
    for arm in (
        {"detectors": SWEPT},
        {"detectors": NEWS},
        {"detectors": {"jump": "ddm", "other": SWEPT["jump"]}, "clusterer": GROUPS},
    ):
        checked(arm=[{"name": "a", **arm}], trace=SWAPPED, detection={})
    far = {"far@home": {"kind": "distance", "eps": 0.1}, "far@1": {"kind": "distance", "eps": 1}}
    checked(arm=[{"name": "a", "clusterer": "fielding", "detectors": far}])  # one at a threshold is no curve


def test_detectors_that_remember_more_than_the_memory_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    detectors = {"window": {"kind": "adwin", "max_buckets": 100}}  # 4 + 8 + 8 + 100 * 8 bytes
    experiment = small(trace={"clients": 12}, arm=[{"name": "only", "detectors": detectors}])
    world = build_world(experiment, 0, locator(None, None))
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 2 * 12 * 820)
    arms_module.check_arms(experiment, ["only"], world)
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 2 * 12 * 820 - 1)
    problem = r"^arm 'only': detectors\.window: remembers 820 bytes or more of each of 12 clients"
    with pytest.raises(ConfigurationError, match=problem):
        arms_module.check_arms(experiment, ["only"], world)


def test_models_are_measured_by_concept_only_if_the_trace_knows_its_concepts() -> None:
    recorded = {"log_model_accuracy": True}
    with pytest.raises(
        ConfigurationError, match=r"^round\.log_model_accuracy = true: this trace does not know its concepts"
    ) as refusal:
        checked(round=recorded)
    assert "\n" not in str(refusal.value)
    checked(round=recorded, trace=SWAPPED)


def test_detection_fits_a_trace_that_knows_its_drifts() -> None:
    checked(trace=SWAPPED, detection={"positive": {"swap": [1, 2]}})


BETAS = {"kind": "by_cluster", "clusters": {"1": {"adam.beta1": 0.5}}}


@pytest.mark.parametrize(
    ("arm", "problem"),
    [
        (
            {"schedules": [BETAS]},
            r"schedule 'by_cluster': sets 'adam\.beta1', which no rule of the solver \[sgd\] reads; choices: "
            r"batch_size, learning_rate, local_steps$",
        ),
        (
            {"schedules": [{**BETAS, "clusters": {"1": {"adam.beta1": 1.5}}}], "solver": ["adam"]},
            r"schedule 'by_cluster': clusters\.1: adam\.beta1 = 1\.5: input should be less than 1$",
        ),
        (
            {"schedules": [{**BETAS, "clusters": {"1": {"mu": 1.5}}}], "solver": ["fedprox", "adam"]},
            r"sets 'mu', which no rule of the solver \[fedprox, adam\] reads; choices: adam\.beta1, "
            r"adam\.beta2, batch_size, fedprox\.mu, learning_rate, local_steps$",
        ),
        (
            {"clusterer": {"kind": "drift_groups", "groups": {"sudden": ["jump"]}}},
            r"clusterer\.groups\.sudden: the arm has no detector 'jump'; it has changed$",
        ),
        (
            {
                "clusterer": {"kind": "drift_groups", "groups": {"sudden": ["jump"]}},
                "detectors": {"jump": "changed"},
            },
            r"clusterer\.groups\.sudden: the detector 'jump' \(changed\) watches reports, and not training; "
            r"those that do: .*ddm.*, page_hinkley$",
        ),
        (
            {
                "clusterer": {"kind": "drift_groups", "groups": {"sudden": ["news"]}},
                "detectors": {"news": "stepd"},
            },
            r"clusterer\.groups\.sudden: the detector 'news' \(stepd\) watches arrivals, and not training; "
            r"those that do: .*ddm.*, page_hinkley$",
        ),
    ],
)
def test_schedules_and_groups_that_name_what_the_arm_has_not_are_refused(
    arm: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^arm 'a': .*{problem}"):
        checked(arm=[{"name": "a", **arm}])


PULLED: dict[str, Any] = {
    "detectors": {"news": "stepd", "jump": "ddm"},
    "solver": [{"kind": "fedprox", "mu": 0.25}, "sgd"],
}


@pytest.mark.parametrize(
    ("arm", "settings", "problem"),
    [
        ({"detectors": {"jump": "ddm"}}, {}, r"the arm has no detector that watches arrivals; .*: stepd$"),
        ({}, {"detector": "jump"}, r"detector = 'jump': is no detector .* watches arrivals; choices: news$"),
        ({"solver": "sgd"}, {}, r"sets 'fedprox\.mu', which no rule of the solver \[sgd\] reads"),
        (
            {"solver": [{"kind": "fedprox", "mu": 0}, "sgd"]},
            {},
            r"fedprox\.mu = 0: times factor = 2, .* the same number, so that a drift would change nothing$",
        ),
        (
            {},
            {"most": 0.25},
            r"fedprox\.mu = 0\.25: times factor = 2, from least = 0 to most = 0\.25, it",
        ),
        ({}, {"most": 0.2}, r"fedprox\.mu = 0\.25, as it is without drift, must be from .* to most = 0\.2$"),
        ({}, {"least": 0.3}, r"fedprox\.mu = 0\.25, as it is without drift, must be from least = 0\.3"),
        (
            {"solver": "adam"},
            {"number": "adam.beta1", "factor": 0.5},
            r"most: adam\.beta1 = 1: input should be less than 1$",
        ),
        (
            {},
            {"number": "learning_rate", "most": 0.01},
            r"learning_rate = 0\.\d+, as it is without drift",
        ),
    ],
)
def test_a_schedule_that_no_drift_would_change_well_is_refused(
    arm: dict[str, Any], settings: dict[str, Any], problem: str
) -> None:
    schedules = [{"kind": "on_drift", **settings}]
    with pytest.raises(ConfigurationError, match=rf"^arm 'a': schedule 'on_drift': {problem}"):
        checked(arm=[{"name": "a", **PULLED, "schedules": schedules, **arm}])


def test_a_schedule_fits_an_arm_whose_detector_watches_arrivals() -> None:
    for settings in ({}, {"detector": "news"}, {"number": "learning_rate", "factor": 0.5, "least": 0.001}):
        checked(arm=[{"name": "a", **PULLED, "schedules": [{"kind": "on_drift", **settings}]}])


def test_step_norms_are_refused_beside_a_schedule_that_gives_tasks_other_numbers_of_the_solver() -> None:
    arm: dict[str, Any] = {"name": "a", **PULLED, "aggregator": "fednova"}
    checked(arm=[{**arm, "detectors": {"jump": "ddm"}}])
    checked(arm=[{**arm, "schedules": [{"kind": "on_drift", "number": "learning_rate"}]}])
    problem = (
        r"^arm 'a': FedNova: needs the metric 'step_norm', which follows from the numbers of the solver, and "
        r"schedule 'on_drift' gives tasks others of fedprox\.mu; leave the schedule out$"
    )
    with pytest.raises(ConfigurationError, match=problem):
        checked(arm=[{**arm, "schedules": ["on_drift"]}])


def test_a_detector_that_watches_arrivals_and_that_nobody_reads_is_refused() -> None:
    arm: dict[str, Any] = {"name": "a", "detectors": {"news": "stepd"}}
    with pytest.raises(ConfigurationError, match=r"^arm 'a': detectors\.news: .* nothing reads what"):
        checked(arm=[arm])
    checked(arm=[{**arm, "schedules": ["slowness"]}])
    with pytest.raises(ConfigurationError, match=r"nobody receives a model .* adaptation = 'alone'"):
        checked(arm=[{**arm, "adaptation": "alone"}])


def test_a_detector_that_watches_arrivals_needs_no_metric_of_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Stepd, "needs", frozenset({"batch_losses"}))
    problem = r"^arm 'a': detectors\.news: Stepd watches arrivals, and needs \['batch_losses'\]; must need no"
    with pytest.raises(ConfigurationError, match=problem):
        checked(arm=[{"name": "a", "detectors": {"news": "stepd"}}])


def test_feature_learning_is_refused_for_a_model_without_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = {"name": "a", "aggregator": {"kind": "sample_share", "feature_learning": "literal"}}
    checked(arm=[arm])
    monkeypatch.setattr(sample_share, "first_layer", lambda layout: None)
    with pytest.raises(ConfigurationError, match=r"^arm 'a': aggregator\.feature_learning = 'literal': the"):
        checked(arm=[arm])


def test_schedules_and_groups_fit_an_arm_that_has_what_they_name() -> None:
    groups = {"kind": "drift_groups", "groups": {"sudden": ["jump"]}}
    parts: dict[str, Any] = {"detectors": {"jump": "loss_jump"}, "solver": ["adam"], "schedules": [BETAS]}
    checked(arm=[{"name": "a", "clusterer": groups, **parts}])
