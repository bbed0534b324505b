"""The file that times the steps of a configuration's model, and running it in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from emulator.errors import ConfigurationError, RunError, naming
from emulator.seeding import RandomStreams
from experiments.build import objective_of, reader_of
from experiments.config import Arm, Experiment
from experiments.locating import DataFolders, locator
from experiments.own.sources import Sources
from experiments.reading import load_experiment
from experiments.shipped import named
from traces.sources import TraceContext

MODEL = """

sys.meta_path.insert(0, Sources({{{sources}}}))


def build() -> nn.Module:
    import datetime
    from math import inf, nan

    {imports}

    return {expression}


if __name__ == "__main__":
    sys.exit(main(build, {sample_shape}, {num_outputs}, {batch_size}, {integers}, {reads!r}))
"""


def script(path: Path, arm_name: str | None, data: DataFolders, *, is_for_here: bool) -> str:
    """The text of a file of Python and torch alone that times a configuration's model.

    Args:
        path: The configuration.
        arm_name: The arm whose model it is; None: arms do not differ in model and batch size.
        data: The folders of --data.
        is_for_here: Whether it may read libraries that are installed here.

    Raises:
        ConfigurationError: The model cannot be written, or reads another library; arms differ.
        InputError: The configuration is not valid, or its trace cannot be drawn.
    """
    from executor.measuring import timing
    from executor.measuring.writing import written
    from executor.probing import refuse_misfit

    experiment = load_experiment(path, data=data)
    with naming(named(path)):
        arm = _arm(experiment, arm_name)
        streams = RandomStreams(experiment.seeds[0])
        context = TraceContext(experiment.round.rounds, streams, locator(data, path))
        trace = experiment.trace.build().build(context)
        reader, objective = reader_of(arm, trace), objective_of(experiment, trace)
        shape, num_outputs = reader.sample_shape, objective.num_outputs(reader)
        model = arm.training.model
        refuse_misfit(model.build(), reader, objective)
        expression, definitions = written(model.kind, model.build(), shape, num_outputs)
        sources = Sources(definitions)
        if sources.libraries and not is_for_here:
            library, user = next(iter(sources.libraries.items()))
            raise ConfigurationError(
                f"training.model = {model.kind!r}: {user} reads {library!r}, and a script "
                f"is of torch and Python alone; write the model without it, or install driftscale and "
                f"{library!r} on the device: driftscale profiles measure"
            )
    texts = {
        name: text.replace("\\", r"\\").replace('"""', r"\"\"\"") for name, text in sources.texts.items()
    }
    return Path(timing.__file__).read_text(encoding="utf-8") + MODEL.format(
        sources="".join(f'\n    {name!r}: """\n{text}\n""",' for name, text in sorted(texts.items())),
        imports="\n    ".join(sorted({f"import {name.partition(':')[0]}" for name in definitions})),
        expression=expression.replace("\n", "\n    "),
        sample_shape=tuple(shape),
        num_outputs=num_outputs,
        batch_size=arm.training.batch_size,
        integers=reader.integers,
        reads=objective.reads,
    )


def measure(text: str, options: Mapping[str, float | None]) -> tuple[str, str]:
    """Run the file `text` in a process of its own.

    Args:
        text: What `script` returns.
        options: Those of the file, by name; None: not given.

    Returns:
        What it prints on standard output, header and row, and on standard error.

    Raises:
        RunError: It failed, as where memory runs out.
    """
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    with TemporaryDirectory() as folder:
        file = Path(folder, "measure.py")
        file.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, file, *given], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        killed = f"the process was ended by signal {-done.returncode}: memory may have run out"
        raise RunError((done.stderr.strip() or killed).splitlines()[-1])
    return done.stdout, done.stderr


def _arm(experiment: Experiment, name: str | None) -> Arm:
    arms = {arm.name: arm for arm in experiment.arm}
    if name is not None and name not in arms:
        raise ConfigurationError(f"--arm {name}: no arm has that name; choices: {', '.join(arms)}")
    models = {(repr(arm.training.model), arm.training.batch_size) for arm in experiment.arm}
    if name is None and len(models) > 1:
        raise ConfigurationError(f"arms differ in model or batch size; choose --arm: {', '.join(arms)}")
    return arms[name or experiment.arm[0].name]
