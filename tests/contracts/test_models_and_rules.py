"""Every registered model and local rule passes its contract, and the contracts refuse breaches."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emulator.errors import ConfigurationError
from emulator.messages import StateSpec
from emulator.plugins import NoSettings
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.models.linear import Linear
from executor.models.mlp import Mlp
from executor.rules import RULES
from executor.rules.base import LocalRule
from executor.rules.early_stopping import EarlyStopping
from executor.rules.fedprox import FedProx
from executor.rules.sgd import Sgd
from experiments import contracts
from tests.executor.models.thin import THIN
from tests.fakes import NOTHING

MORE_MODELS = [
    ("char_lstm", {"embedding": 3, "hidden": 5, "layers": 1}),
    ("cnn", {"channels": [3, 5], "padding": 1}),
    ("context", {"inner": "linear", "size": 3}),
    ("masked", {"inner": {"kind": "mlp", "hidden": [5]}, "feddrift_unmasked_inference": True}),
    ("masked", {"inner": "cnn"}),
    ("mixture", {"inner": "linear", "experts": 2}),
    ("mlp", {"hidden": []}),
    ("mlp", {"hidden": [5, 7]}),
    ("resnet", {"depth": 1, "channels": 6, "groups": 1}),
    ("word_transformer", {"layers": 1, "heads": 3, "width": 6}),
]
VECTORS = {"char_lstm": (6,), "mixture": (72,), "word_transformer": (6,)}
"""The samples of models that take vectors, or texts, alone."""

MORE_RULES = [
    ("adam", {"amsgrad": True, "weight_decay": 0.01}),
    ("adam", {"keep": "task", "beta1": 0.5}),
    ("adam", {"beta1": 0.0}),
    ("apfl", {"mix": "outputs"}),
    ("apfl", {"mix": "outputs", "adaptive": True}),
    ("clip", {"norm": 0.5}),
    ("feddyn", {"weights": "samples", "clip": 0.5}),
    ("fedprox", {"mu": 0.5, "fedscale_sign": True}),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.01}),
]


def named(part: tuple[str, dict[str, object]]) -> str:
    return "-".join([part[0], *map(str, part[1].values())])


@pytest.mark.slow
@pytest.mark.parametrize("part", [*((name, {}) for name in MODELS.names()), *MORE_MODELS], ids=named)
def test_models(part: tuple[str, dict[str, object]]) -> None:
    kind = THIN.get(part[0], MODELS.find(part[0]))  # of millions of parameters: with few channels
    settings = kind.Settings.model_validate(part[1])
    contracts.check_model(lambda: kind(settings), VECTORS.get(part[0], (8, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("sample_shape", [(28, 28), (3, 32, 32)])
@pytest.mark.parametrize("name", [name for name in MODELS.names() if name not in {*THIN, *VECTORS}])
def test_models_of_larger_images(name: str, sample_shape: tuple[int, ...]) -> None:
    kind = MODELS.find(name)
    contracts.check_model(lambda: kind(kind.Settings()), sample_shape)


@pytest.mark.slow
@pytest.mark.parametrize("part", [*((name, {}) for name in RULES.names()), *MORE_RULES], ids=named)
def test_rules(part: tuple[str, dict[str, object]]) -> None:
    kind = RULES.find(part[0])
    settings = kind.Settings.model_validate(part[1])
    contracts.check_rule(lambda: kind(settings))


@pytest.mark.parametrize("name", RULES.names())
def test_state_is_named_after_its_rule(name: str) -> None:
    kind = RULES.find(name)
    assert all(key.startswith(f"{name}.") for key in kind(kind.Settings()).state)


def test_at_least_one_rule_is_an_optimiser() -> None:
    assert any(part.is_optimiser for _, part in RULES)


@pytest.mark.slow
def test_contracts_without_models_and_rules_need_no_torch() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from experiments import contracts\n"
            "assert 'torch' not in sys.modules, 'imported'\n"
            "assert not hasattr(contracts, 'check_nothing')\n"
            "assert 'torch' not in sys.modules, 'imported by an unknown name'\n",
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# -- models that break a rule -------------------------------------------------------------------------------


class Of(ModelSpec):
    """A model whose module is `make(features, labels)`."""

    stacks = False

    def __init__(self, make) -> None:
        self.make = make

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        return self.make(int(np.prod(sample_shape)), num_labels)


class Flat(nn.Module):
    """A linear model whose logits `turn` changes, given the samples."""

    def __init__(self, features: int, labels: int, turn) -> None:
        super().__init__()
        self.linear = nn.Linear(features, labels)
        self.turn = turn

    def forward(self, samples: Tensor) -> Tensor:
        return self.turn(self.linear(samples.flatten(1)), samples)


def turned(turn):
    return lambda: Of(lambda features, labels: Flat(features, labels, turn))


def frozen(features: int, labels: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(features, labels).requires_grad_(False))


class Twin(nn.Module):
    """Starts as a normalisation, the same for all seeds."""

    def __init__(self, features: int, labels: int) -> None:
        super().__init__()
        self.norm, self.labels = nn.LayerNorm(features), labels

    def forward(self, samples: Tensor) -> Tensor:
        return self.norm(samples.flatten(1))[:, :1] * torch.arange(1.0, self.labels + 1)


class Idle(nn.Module):
    """Has a layer that no logit depends on."""

    def __init__(self, features: int, labels: int) -> None:
        super().__init__()
        self.linear, self.idle = nn.Linear(features, labels), nn.Linear(1, 1)

    def forward(self, samples: Tensor) -> Tensor:
        return self.linear(samples.flatten(1))


class Products(nn.Module):
    """A linear model without a matrix product."""

    def __init__(self, features: int, labels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, labels)

    def forward(self, samples: Tensor) -> Tensor:
        return (samples.flatten(1)[:, None] * self.linear.weight).sum(2) + self.linear.bias


def drawing(logits: Tensor, samples: Tensor) -> Tensor:
    torch.rand(1)
    return logits


def drawing_by_numpy(logits: Tensor, samples: Tensor) -> Tensor:
    np.random.random()  # noqa: NPY002
    return logits


def drawing_by_python(logits: Tensor, samples: Tensor) -> Tensor:
    random.random()
    return logits


def painting(logits: Tensor, samples: Tensor) -> Tensor:
    with torch.no_grad():
        samples += 1
    return logits


def moody():
    calls = count()
    return turned(lambda logits, samples: logits + next(calls))


class Images(Linear):
    """Takes images only; refuses other samples with a ValueError."""

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        height, width = sample_shape
        return nn.Sequential(nn.Flatten(), nn.Linear(height * width, num_labels))


class Wordy(Linear):
    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        if len(sample_shape) != 2:
            raise ConfigurationError("takes images,\nand nothing else")
        return super().build(sample_shape, num_labels)


class Growing(Linear):
    """Builds a different module every time."""

    built = count(1)

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        wide = next(self.built)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(int(np.prod(sample_shape)), wide), nn.Linear(wide, num_labels)
        )


class Drawn(Linear):
    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        torch.rand(1, device="cpu")
        return super().build(sample_shape, num_labels)


class Unstacked(Linear):
    stacks = False


class Vague(Linear):
    stacks = "perhaps"  # type: ignore[assignment]


class NoRelu(Mlp):
    """Declares `dense`, but has tanh between its layers."""

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        layers = list(super().build(sample_shape, num_labels))
        return nn.Sequential(*(nn.Tanh() if isinstance(layer, nn.ReLU) else layer for layer in layers))


class Alone(nn.Module):
    """Another function within vmap, as in training side by side."""

    def __init__(self, features: int, labels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, labels)

    def forward(self, samples: Tensor) -> Tensor:
        logits = self.linear(samples.flatten(1))
        return 2 * logits if torch._C._functorch.is_batchedtensor(logits) else logits


def bad_models():
    return [
        pytest.param(turned(lambda logits, samples: logits[:, 1:]), "logits of shape", id="a label too few"),
        pytest.param(turned(lambda logits, samples: logits.double()), "not torch.float32", id="double"),
        pytest.param(turned(lambda logits, samples: logits / 0), "must be finite", id="endless"),
        pytest.param(moody(), "return different logits", id="moody"),
        pytest.param(
            turned(lambda logits, samples: logits - logits.mean(0)), "other samples of its batch", id="mixing"
        ),
        pytest.param(turned(painting), "writes to the samples", id="painting"),
        pytest.param(turned(drawing), "draws in evaluation mode, by rand", id="torch's generator"),
        pytest.param(lambda: Drawn(NOTHING), "global generator of torch", id="built of torch's generator"),
        pytest.param(turned(drawing_by_numpy), "global generator of numpy", id="numpy's generator"),
        pytest.param(turned(drawing_by_python), "global generator of random", id="Python's generator"),
        pytest.param(lambda: Of(frozen), "no tensor is trainable", id="frozen"),
        pytest.param(lambda: Of(Twin), "do not depend on seed and number", id="twins"),
        pytest.param(lambda: Of(Products), "duration cannot be estimated", id="no matrix product"),
        pytest.param(lambda: Of(Idle), "no logit depends on idle", id="idle"),
        pytest.param(lambda: Images(NOTHING), "samples of shape .*ValueError", id="an error of Python's"),
        pytest.param(lambda: Wordy(NOTHING), "refused in more than one line", id="two lines"),
        pytest.param(lambda: Growing(NOTHING), "different tensors", id="growing"),
        pytest.param(lambda: Unstacked(NOTHING), "stacks must be True", id="unstacked"),
        pytest.param(lambda: Vague(NOTHING), "stacks = 'perhaps'", id="vague"),
        pytest.param(lambda: NoRelu(Mlp.Settings()), "affine maps with ReLU", id="no ReLU"),
        pytest.param(
            lambda: Of(Alone), "StackedStrategy and ReferenceLoop differ", id="another side by side"
        ),
        pytest.param(
            turned(lambda logits, samples: logits * torch.ones(4, 1)[: len(samples)]),
            "a batch of 8 samples: RuntimeError",
            id="four samples at most",
        ),
    ]


@pytest.mark.parametrize(("make", "complaint"), bad_models())
def test_models_that_break_a_rule_are_refused(make, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_model(make)


@pytest.mark.parametrize("layer", [nn.Dropout, lambda: nn.BatchNorm1d(7), nn.PReLU])
def test_layers_that_draw_or_have_statistics_keep_the_contract(layer) -> None:
    def with_layer(features: int, labels: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(features, labels), layer())

    contracts.check_model(lambda: Of(with_layer))


# -- rules that break a rule --------------------------------------------------------------------------------


class Link(LocalRule):
    """A rule before the optimiser that returns `correct(rule, run, gradient)`."""

    def __init__(self, correct, begin=lambda run: None, state=None) -> None:
        self.turn = correct
        self.start = begin
        self.declared = state or {}

    @property
    def state(self):
        return self.declared

    def begin(self, run) -> None:
        self.start(run)

    def correct(self, run, gradient):
        return self.turn(self, run, gradient)


class Plain(Sgd):
    """Declares plain descent, but clips gradients."""

    @property
    def is_plain_descent(self) -> bool:
        return True

    def correct(self, run, gradient):
        return super().correct(run, gradient.clamp_(-0.1, 0.1))


class PlainLink(FedProx):
    """Declares plain descent, but is not an optimiser."""

    @property
    def is_plain_descent(self) -> bool:
        return True


class StillLink(FedProx):
    """Declares that it leaves steps as they are."""

    changes_steps = False


class Together(EarlyStopping):
    """All tasks stop if one does."""

    def stops(self, epoch, before, after, samples):
        stops = super().stops(epoch, before, after, samples)
        return stops | stops.any()


class Never(EarlyStopping):
    """Goes on whatever the losses are."""

    def stops(self, epoch, before, after, samples):
        return torch.zeros(len(before), dtype=torch.bool)


class OneOfASide(LocalRule):
    """An optimiser that takes larger steps where several tasks of larger models train side by side.

    The contract checks rules alone on fewer parameters, so that only the strategies differ.
    """

    is_optimiser = True

    def correct(self, run, gradient):
        return (
            gradient
            * run.settings["learning_rate"]
            * (2 if gradient.shape[1] > 40 and len(gradient) > 1 else 1)
        )


def slot(key: str, shape: str = "parameters", start: float = 0.0, width: int | None = None):
    """A `begin` that creates a slot of the state, unless it exists."""

    def begin(run) -> None:
        if key not in run.state:
            wide = (5 if shape == "parameters" else 1) if width is None else width
            run.state[key] = torch.full((len(run.present), wide), start)

    return begin


PULL = {"pull.mean": StateSpec("parameters")}


def link(correct, begin=lambda run: None, state=None):
    return lambda: Link(correct, begin, state)


def rules_of_wrong_steps():
    calls = count()

    def mixed(rule, run, gradient):
        return gradient - gradient.mean(0)

    def moody(rule, run, gradient):
        return gradient + next(calls)

    def endless(rule, run, gradient):
        return gradient / 0

    def short(rule, run, gradient):
        return gradient[:, 1:]

    def double(rule, run, gradient):
        return gradient.double()

    def receives(rule, run, gradient):
        run.received.add_(1)
        return gradient

    def moves(rule, run, gradient):
        run.present.add_(1)
        return gradient

    def sets(rule, run, gradient):
        run.settings["learning_rate"].mul_(2)
        return gradient

    def counts(rule, run, gradient):
        run.step += 1
        return gradient

    return [
        pytest.param(link(mixed), "depend on the other tasks", id="mixed"),
        pytest.param(link(moody), "different corrections", id="moody"),
        pytest.param(link(endless), "correct returns must be finite", id="endless"),
        pytest.param(link(short), "correct returns shape", id="short"),
        pytest.param(link(double), "correct returns torch.float64", id="double"),
        pytest.param(link(receives), "not change the received parameters", id="received"),
        pytest.param(link(moves), "not change the present parameters", id="present"),
        pytest.param(link(sets), "not change the setting learning_rate", id="settings"),
        pytest.param(link(counts), "not change run.step", id="steps"),
    ]


def rules_of_wrong_state():
    def drops(rule, run, gradient):
        run.state.clear()
        return gradient

    def late(rule, run, gradient):
        run.state["pull.late"] = gradient.clone()
        return gradient

    def replaces(rule, run, gradient):
        run.state["pull.mean"] = run.state["pull.mean"] + gradient
        return gradient

    def adds(rule, run, gradient):
        return gradient.add_(run.state["pull.mean"].add_(gradient))

    def same(rule, run, gradient):
        return gradient

    def begins_anew(run) -> None:
        run.state["pull.mean"] = torch.zeros_like(run.present)

    def grows(rule, run, gradient):
        rule.tasks = getattr(rule, "tasks", 0) + (run.step == 0)
        return gradient * rule.tasks

    def draws(rule, run, gradient):
        torch.rand(1)
        return gradient

    def seeds(rule, run, gradient):
        np.random.seed(7)  # noqa: NPY002
        return gradient

    return [
        pytest.param(link(drops, slot("pull.mean")), "never dropped", id="drops"),
        pytest.param(link(late), "created in begin", id="late"),
        pytest.param(link(replaces, slot("pull.mean")), "written in place", id="replaces"),
        pytest.param(link(adds, begins_anew, PULL), "replaced in begin", id="begins anew"),
        pytest.param(link(same, slot("mean")), "not named after the rule", id="no name"),
        pytest.param(
            link(same, lambda run: [slot(key)(run) for key in ("pull.mean", "push.mean")]),
            "name several rules",
            id="two names",
        ),
        pytest.param(link(same, slot("pull.mean"), PULL), "changes nothing", id="idle state"),
        pytest.param(link(grows), "outside the state that it declares", id="remembers elsewhere"),
        pytest.param(link(draws), "global generator of torch", id="draws"),
        pytest.param(link(seeds), "global generator of numpy", id="seeds"),
    ]


def bad_optimisers():
    return [
        pytest.param(lambda: Plain(Sgd.Settings()), "does not return the gradient", id="no descent"),
        pytest.param(lambda: PlainLink(FedProx.Settings()), "must be an optimiser", id="a link of descent"),
        pytest.param(lambda: StillLink(FedProx.Settings()), "but changes them", id="steps change"),
        pytest.param(lambda: Together(EarlyStopping.Settings()), "depends on the other", id="stop together"),
        pytest.param(lambda: Never(EarlyStopping.Settings()), "not a number must stop", id="never stops"),
        pytest.param(
            lambda: OneOfASide(NoSettings()), "Strategy and ReferenceLoop differ", id="unequal strategies"
        ),
    ]


@pytest.mark.parametrize(
    ("make", "complaint"), [*rules_of_wrong_steps(), *rules_of_wrong_state(), *bad_optimisers()]
)
def test_rules_that_break_a_rule_are_refused(make, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_rule(make)


def test_a_rule_must_declare_whether_it_is_an_optimiser() -> None:
    class Vague(Link):
        is_optimiser = None  # type: ignore[assignment]

    with pytest.raises(AssertionError, match="is_optimiser = None"):
        contracts.check_rule(lambda: Vague(lambda rule, run, gradient: gradient))


def test_a_rule_and_a_model_of_a_third_party_pass() -> None:
    class Clipped(LocalRule):
        """Divides each task's gradient by the largest norm so far, if that is above 1."""

        @property
        def state(self):
            return {"clipped.longest": StateSpec("scalar")}

        def begin(self, run) -> None:
            run.state.setdefault("clipped.longest", torch.zeros_like(run.present[:, :1]))

        def correct(self, run, gradient):
            longest = run.state["clipped.longest"]
            torch.maximum(longest, gradient.norm(dim=1, keepdim=True), out=longest)
            return gradient / longest.clamp(min=1.0)

    class Tanh(ModelSpec):
        """A hidden layer with tanh."""

        stacks = True

        def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
            layers = (
                nn.Flatten(),
                nn.Linear(int(np.prod(sample_shape)), 5),
                nn.Tanh(),
                nn.Linear(5, num_labels),
            )
            return nn.Sequential(*layers)

    contracts.check_rule(lambda: Clipped(NOTHING))
    contracts.check_model(lambda: Tanh(NOTHING))
