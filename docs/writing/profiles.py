"""The page of device profiles: the catalogue, the columns of a profile, and its distributions."""

from __future__ import annotations

from collections.abc import Iterator

from device_profiles import PROFILES, load_profile
from device_profiles.fleet import ALIASES, MAY_BE_ZERO
from device_profiles.mixture import Discrete, Lognormal, Quantiles
from docs.writing.markdown import code, fence, heading, page, prose, table
from emulator.numbers import DEVICE_BOUNDS
from experiments.part_facts import summary_line
from experiments.setting_facts import toml_value

NAME = "device-profile"
"""The name of the page among those of parts."""

INTRODUCTION = """\
Named by `devices.profile`: a name of the catalogue, the path of a table (`.csv`, `.parquet`) or of a
mixture (`.toml`), or [your own](../../howto/parts/device-profile.md) object, `"my_parts:my_profile"`.
`driftscale profiles show NAME` has its quantiles. The reference model is the one that a sample's seconds
are of; `devices.model_factor` turns them into those of the model that is trained."""

COLUMNS = """\
A table has a row for each device, with a column `device_id` and these; a mixture has a distribution for
each, in each class. A column goes by its name or by an alias, whose values are converted. Only `latency_s`
may be left out: it is 0 then. Further columns of a table are not read, and `driftscale profiles check` names
them; one that is nearly a known name is refused."""

MIXTURE = """\
A mixture has `reference_model`, `reference_flops`, `source` and a list `[[class]]`. A class has a `name`, a
`share`, and for each column a number, which all its devices have, or one of these distributions. Shares sum
to 1. A list of pairs may be the path of a CSV beside the file."""

DISTRIBUTIONS = (
    (Quantiles, "{ quantiles = [[0, 0.05], [0.5, 0.12], [1, 0.6]] }", "probability and value"),
    (Discrete, "{ discrete = [[44, 2], [79, 1]] }", "value and weight"),
    (Lognormal, "{ lognormal = { median = 5000, sigma = 0.5, clip = [100, 10000] } }", ""),
)


def profiles_page() -> str:
    """The page of device profiles."""
    return page(
        "Parts: device profile",
        "Says how fast each client computes, downloads and uploads.",
        INTRODUCTION,
        *(block for name in PROFILES.ours() for block in _profile(name)),
        heading(2, "Columns"),
        COLUMNS,
        table(("column", "bounds", "aliases"), list(_columns())),
        table(("alias", "is converted by"), [(code(name), prose(_conversion(name))) for name in ALIASES]),
        heading(2, "Mixtures"),
        MIXTURE,
        table(
            ("distribution", "what it is", "pairs"),
            [(code(example), prose(summary_line(of)), pairs) for of, example, pairs in DISTRIBUTIONS],
        ),
    )


def names() -> str:
    """Links to the profiles of the catalogue, for the index of parts."""
    return ", ".join(f"[`{name}`]({NAME}.md#{name})" for name in PROFILES.ours())


def _profile(name: str) -> Iterator[str]:
    profile = load_profile(name)
    yield heading(2, code(name))
    flops = profile.reference_flops
    of = f", of {toml_value(float(flops))} FLOPs for a sample" if flops else ""
    yield f"Reference model: {prose(profile.reference_model or 'none')}{of}."
    yield f"Source: {prose(profile.source)}."
    yield fence("toml", f'[devices]\nprofile = "{name}"\n')


def _columns() -> Iterator[tuple[str, str, str]]:
    for column, (least, most) in DEVICE_BOUNDS.items():
        bounds = f"{toml_value(float(least))} to {toml_value(float(most))}"
        aliases = ", ".join(code(name) for name, alias in ALIASES.items() if column in alias.gives)
        yield code(column), bounds + (", or left out" if column in MAY_BE_ZERO else ""), aliases


def _conversion(name: str) -> str:
    alias = ALIASES[name]
    return f"{' and '.join(map(code, alias.gives))} = {alias.factor / alias.divisor:g} x the value"
