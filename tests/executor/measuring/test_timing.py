"""The file that times steps: on a clock of its own, and what it prints."""

from __future__ import annotations

import csv
import math
import sys

import pytest
import torch
from torch import Tensor, nn

from executor.measuring import timing
from executor.measuring.timing import LEARNING_RATE, PAUSE_S, REPEATS, descent, main, timed

RATES = ("--download-mbps", "50", "--upload-mbps", "10")


class Clock:
    """A clock that moves when a step is done: the `number`-th step after the start takes `of(number)`."""

    def __init__(self, seconds: list[float]) -> None:
        self.now_s, self.steps, self.pauses = 0.0, 0, list[float]()
        self._seconds = seconds

    def step(self) -> None:
        self.now_s += self._seconds[min(self.steps, len(self._seconds) - 1)]
        self.steps += 1

    def __call__(self) -> float:
        return self.now_s


def test_a_repeat_is_of_as_many_steps_as_last_a_twentieth_of_a_second_after_a_pause() -> None:
    clock = Clock([3.0] + [1 / 128] * 10_000)
    seconds = timed(clock.step, clock, clock.pauses.append)
    assert seconds == [1 / 128] * REPEATS
    assert clock.pauses == [PAUSE_S] * REPEATS
    assert clock.steps == 1 + 128 + REPEATS * round(128 / 20)


def test_a_slow_step_is_a_repeat_of_its_own_and_warm_up_does_not_count() -> None:
    clock = Clock([9.0, 9.0, *(float(number) for number in range(1, REPEATS + 1))])
    assert timed(clock.step, clock, clock.pauses.append) == list(range(1, REPEATS + 1))


def test_a_step_is_plain_descent_on_the_mean_cross_entropy_of_what_trains() -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    module[0].requires_grad_(False)
    frozen, weight = module[0].weight.clone(), module[1].weight.detach().clone()
    features, labels = torch.eye(3), torch.tensor([0, 1, 1])
    nn.functional.cross_entropy(module(features), labels).backward()
    gradient = module[1].weight.grad
    assert gradient is not None
    descent(module, features, labels)()
    assert torch.allclose(module[1].weight.detach(), weight - LEARNING_RATE * gradient, rtol=1e-6)
    assert torch.equal(module[0].weight, frozen)


@pytest.mark.parametrize(
    ("targets", "loss"),
    [
        (torch.tensor([[0, 1], [1, 1], [0, 0]]), nn.CrossEntropyLoss()),  # of two tokens a sample
        (torch.tensor([[[0.5, 1.0]] * 2] * 3), nn.MSELoss()),
    ],
)
def test_a_step_is_of_the_loss_of_tokens_or_of_numbers(targets: torch.Tensor, loss: nn.Module) -> None:
    module, features = nn.Linear(3, 2), torch.rand(3, 2, 3)
    before, outputs = module.weight.detach().clone(), module(features)
    flat = (outputs, targets) if targets.is_floating_point() else (outputs.flatten(0, 1), targets.flatten())
    loss(*flat).backward()
    assert module.weight.grad is not None
    descent(module, features, targets)()
    assert torch.allclose(module.weight.detach(), before - LEARNING_RATE * module.weight.grad, rtol=1e-6)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are done, and take 2, 4 and 8 seconds as far as the row says."""

    def three(step: object) -> list[float]:
        step()  # type: ignore[operator]
        return [2.0, 8.0, 4.0]

    monkeypatch.setattr(timing, "timed", three)
    monkeypatch.setattr(sys, "argv", ["measure.py", *RATES])


def test_a_row_has_the_median_of_a_sample_the_spread_of_its_logarithm_and_the_rates(
    quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(lambda: nn.Linear(3, 2), (3,), 2, 10, False, "labels") == 0
    out, notes = capsys.readouterr()
    [row] = csv.DictReader(out.splitlines())
    assert [*row] == [
        "device_id",
        "seconds_per_sample",
        "sd_of_log",
        "peak_memory_bytes",
        "download_mbps",
        "upload_mbps",
    ]
    assert (row["seconds_per_sample"], row["download_mbps"], row["upload_mbps"]) == ("0.4", "50.0", "10.0")
    assert float(row["sd_of_log"]) == pytest.approx(math.log(2), abs=1e-3)
    assert 2**25 < int(row["peak_memory_bytes"]) < 2**36
    assert "devices.model_factor = 1 and devices.jitter.model = 0" in notes
    assert "sd_of_log = 0.693 is above 0.1: something else computes on this device" in notes


def test_nothing_is_said_of_a_quiet_device(
    quick: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "timed", lambda step: [4.0, 4.1, 4.2])
    assert main(lambda: nn.Linear(3, 2), (3,), 2, 10, False, "labels") == 0
    assert "above" not in capsys.readouterr().err


def test_tokens_are_whole_numbers(quick: None) -> None:
    model = nn.Sequential(nn.Embedding(2, 4), nn.Flatten(), nn.Linear(12, 2))
    assert main(lambda: model, (3,), 2, 10, True, "labels") == 0


class Full(nn.Linear):
    error: type[Exception] = MemoryError

    def forward(self, features: Tensor) -> Tensor:
        raise self.error("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, torch.OutOfMemoryError])
def test_memory_that_runs_out_in_a_step_is_one_line_with_the_remedy(
    quick: None, capsys: pytest.CaptureFixture[str], error: type[Exception]
) -> None:
    Full.error = error
    said = main(lambda: Full(3, 2), (3,), 2, 640, False, "labels")
    assert said == ("out of memory while a step of 640 samples was timed; set a smaller training.batch_size")
    assert capsys.readouterr().out == ""


def test_another_error_of_a_step_stays_what_it_is(quick: None) -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        main(lambda: nn.Linear(4, 2), (3,), 2, 10, False, "labels")
