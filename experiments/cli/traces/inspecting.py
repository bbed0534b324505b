"""`driftscale traces inspect`: checks the options, prints the facts, and writes the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from emulator.errors import ConfigurationError, InputError
from emulator.numbers import MOST
from experiments.cli.output import OutputFormat, say
from experiments.cli.traces.inspected import (
    Inspected,
    inspected_config,
    inspected_folder,
    page_facts,
    print_inspected,
)
from experiments.shipped import named
from traces.calendar import CALENDAR, MOST_DAYS, CalendarWidth


@dataclass(frozen=True)
class Request:
    """The arguments of the command, as they were given.

    `note` is a line that says what was taken for `path`, where two could be meant.
    """

    path: Path
    overrides: Sequence[str]
    data: Sequence[Path]
    seed: int | None
    step_width: str | None
    since: str | None
    until: str | None
    min_samples: int
    min_windows: int
    html: Path | None
    clients: str | None
    output: OutputFormat
    note: str = ""


def inspect_trace(request: Request) -> None:
    """Print the facts about a trace; with --html, write its page first.

    Raises:
        InputError: an option does not fit, or the trace cannot be read or drawn.
    """
    if request.clients is not None and request.html is None:
        raise InputError("--clients: chooses clients for the page; give --html as well")
    if request.html is not None and (request.html.suffix != ".html" or request.html.is_dir()):
        raise InputError(f"--html {request.html}: must be a file that ends in .html")
    if request.note:
        say(request.note, aside=True)
    inspected = _inspected(request)
    if request.html is not None:
        from experiments.results.pages.trace_page import write_trace_page

        names = [name.strip() for name in (request.clients or "").split(",") if name.strip()]
        counts = next(iter(inspected.counts.values()))
        write_trace_page(request.html, page_facts(inspected.facts), counts, names, request.min_samples)
    print_inspected(inspected.facts, request.output)
    if request.html is not None and request.output is OutputFormat.TABLE:
        say(f"page: {request.html}")


def _inspected(request: Request) -> Inspected:
    of_folder = {"--step-width": request.step_width, "--since": request.since, "--until": request.until}
    of_config = {"--set": request.overrides, "--seed": request.seed}
    if request.path.is_dir():
        for option, value in of_config.items():
            if value not in (None, []):
                raise InputError(f"{option}: is for a configuration, but {request.path} is a folder")
        return inspected_folder(
            request.path,
            parse_width(request.step_width),
            parse_bound("--since", request.since),
            parse_bound("--until", request.until),
            request.min_samples,
            request.min_windows,
        )
    for option, value in of_folder.items():
        if value is not None:
            key = option.removeprefix("--").replace("-", "_")
            raise InputError(
                f"{option}: is for a trace folder, but {named(request.path)} is none; a configuration of the "
                f"source file has trace.{key} (--set trace.{key}=...)"
            )
    return inspected_config(
        request.path, request.overrides, request.data, request.seed, request.min_samples, request.min_windows
    )


def parse_width(text: str | None) -> float | CalendarWidth | None:
    """The width of a window, as the source `file` takes it.

    Raises:
        ConfigurationError: it is neither a number in range nor a unit of the calendar.

    >>> parse_width("7"), parse_width("month"), parse_width(None)
    (7.0, 'month', None)
    """
    for unit in CALENDAR:
        if text == unit:
            return unit
    if text is None:
        return None
    try:
        width = float(text)
    except ValueError:
        width = 0.0
    if not 0 < width <= MOST_DAYS:
        raise ConfigurationError(
            f"--step-width {text}: must be {', '.join(CALENDAR)} or a number above 0, at most {MOST_DAYS:,}"
        )
    return width


def parse_bound(option: str, text: str | None) -> date | int | None:
    """A date, or the number of a step or rank.

    Raises:
        ConfigurationError: it is neither.

    >>> parse_bound("--since", "2015-01-31"), parse_bound("--since", "-3")
    (datetime.date(2015, 1, 31), -3)
    """
    if text is None:
        return None
    for read in (int, date.fromisoformat):
        try:
            value = read(text)
        except ValueError:
            continue
        if isinstance(value, date) or -MOST <= value <= MOST:
            return value
    raise ConfigurationError(f"{option} {text}: must be a date, as in 2015-01-31, or a whole number")
