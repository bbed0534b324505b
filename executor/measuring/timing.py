"""Times plain SGD steps of a model, and prints the row of a fleet: a file of torch and Python alone.

`driftscale profiles script` writes this file with a model, to be run where nothing else is installed, and
`driftscale profiles measure` runs what it writes. A row has the `device_id`, the `seconds_per_sample`: the
median over `REPEATS` repeats; their `sd_of_log`, the standard deviation of its natural logarithm; the
`peak_memory_bytes` of the process; and the rates that are given.
"""

from __future__ import annotations

import argparse
import csv
import math
import platform
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

REPEATS = 30
PAUSE_S = 0.1
"""The pause before each repeat."""
REPEAT_S = 0.05
"""How long a repeat lasts: of as many steps as that takes, and at least one."""
WARM_UP_S = 1.0
LEARNING_RATE = 1e-3
RATES = ("download_mbps", "upload_mbps", "latency_ms")
OUT_OF_MEMORY = ("can't allocate memory", "out of memory")
"""How torch says that memory ran out."""
MOST_SPREAD = 0.1
UNQUIET = "something else computes on this device, or it gets hot; measure again, or with fewer --threads"
NOTE = "to a fleet of such rows belong devices.model_factor = 1 and devices.jitter.model = 0"


class Sources(InspectLoader, MetaPathFinder):
    """Imports modules from their sources, which are given by name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in self._texts else None

    def is_package(self, fullname: str) -> bool:
        return any(name.startswith(f"{fullname}.") for name in self._texts)

    def get_source(self, fullname: str) -> str:
        return self._texts[fullname]


def assembled(kind: type[nn.Module], members: Mapping[str, Any]) -> nn.Module:
    """A module of that class with these parameters, layers and numbers; its constructor is not called."""
    module: nn.Module = kind.__new__(kind)
    nn.Module.__init__(module)
    for name, member in members.items():
        if isinstance(member, torch.Tensor) and not isinstance(member, nn.Parameter):
            module.register_buffer(name, member)
        else:
            setattr(module, name, member)
    return module


def descent(module: nn.Module, features: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    """A plain SGD step on one batch, as the local training of a run does it.

    `targets` are labels or tokens, whole numbers, with cross-entropy; or numbers, with squared errors.
    """
    parameters = [part for part in module.train().parameters() if part.requires_grad]

    def step() -> None:
        outputs = module(features)
        if targets.is_floating_point():
            loss = functional.mse_loss(outputs, targets)
        else:
            loss = functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
        gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
        with torch.no_grad():
            for part, gradient in zip(parameters, gradients, strict=True):
                part.add_(gradient, alpha=-LEARNING_RATE)

    return step


def timed(
    step: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> list[float]:
    """The seconds of a step in each of `REPEATS` repeats, after `WARM_UP_S` of steps that do not count."""
    step()  # which sets up what later ones have
    begun, count = clock(), 0
    while clock() - begun < WARM_UP_S:
        step()
        count += 1
    steps = max(1, round(REPEAT_S * count / WARM_UP_S))
    seconds = []
    for _ in range(REPEATS):
        sleep(PAUSE_S)
        begun = clock()
        for _ in range(steps):
            step()
        seconds.append((clock() - begun) / steps)
    return seconds


def main(
    build: Callable[[], nn.Module],
    sample_shape: tuple[int, ...],
    num_outputs: int,
    batch_size: int,
    integers: bool,
    reads: str,
) -> int | str:
    """Time steps on `batch_size` samples and print the row of this device, with a header.

    Samples are drawn; where they are `integers`, as tokens, all are 1. `reads` is what the objective is
    about: "labels", "tokens" or "targets". Returns what `sys.exit` takes: 0, or what is wrong.
    """
    options = _options()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    shape = (batch_size, *sample_shape)
    try:
        features = torch.ones(shape, dtype=torch.int64) if integers else torch.rand(shape)
        told = (batch_size, *sample_shape) if reads == "tokens" else (batch_size,)
        targets = torch.randint(num_outputs, told)
        if reads == "targets":
            targets = torch.rand(batch_size, num_outputs)
        seconds = timed(descent(build(), features, targets))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(text in str(error) for text in OUT_OF_MEMORY):
            raise
        return (
            f"out of memory while a step of {batch_size} samples was timed; set a smaller training.batch_size"
        )
    spread = statistics.stdev(map(math.log, seconds))
    row = {
        "device_id": platform.node() or "device",
        "seconds_per_sample": f"{statistics.median(seconds) / batch_size:.6g}",
        "sd_of_log": f"{spread:.3g}",
        "peak_memory_bytes": _peak_memory_bytes(),
        **{name: rate for name in RATES if (rate := getattr(options, name)) is not None},
    }
    csv.writer(sys.stdout, lineterminator="\n").writerows([row, row.values()])
    if spread > MOST_SPREAD:
        sys.stderr.write(f"sd_of_log = {spread:.3g} is above {MOST_SPREAD}: {UNQUIET}\n")
    sys.stderr.write(f"{NOTE}\n")
    return 0


def _peak_memory_bytes() -> int:
    """NOTE: not of getrusage on Linux, which counts what the process had that started this one."""
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s*(\d+)", status.read_text(encoding="utf-8") if status.exists() else "")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, else KiB
    return unit * (int(peak[1]) if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times a model on this device; prints the row of a fleet.")
    parser.add_argument(
        "--threads", type=int, help="that torch computes with; by default as many as it takes"
    )
    for name in RATES:
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, help="of the link of this device")
    return parser.parse_args()
