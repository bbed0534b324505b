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
    Facts,
    Inspected,
    clients_are_called,
    page_facts,
    print_inspected,
)
from experiments.cli.traces.views import ConfigView, FolderView, View
from experiments.shipped import named
from traces.calendar import CALENDAR, MOST_DAYS
from traces.inspection.window_choice import Choice, Width

AUTO = "auto"
"""The width that stands for the narrowest one that shows half of the clients."""


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
    window: str | None
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

    Without an option for the width of windows, the page has the narrowest ones that show half of the clients.

    Raises:
        InputError: an option does not fit, or the trace cannot be read or drawn.
    """
    _check(request)
    width = _width(request)
    if request.note:
        say(request.note, aside=True)
    view = _view(request)
    choice: Choice | None = None
    if width is not None:
        table = page = view.inspected(width)
    elif request.window == AUTO:
        choice = view.choice()
        table = page = view.inspected(choice.width or 1)
    else:
        table = page = view.inspected(None)
        choice = view.choice()
        if request.html is not None and choice.width is not None and choice.width != 1:
            page = view.inspected(choice.width)
    if request.html is not None:
        of = width if choice is None else choice.width
        is_said = request.window is not None or page is not table
        _write_page(request.html, page, view.in_words(of) if is_said else None, choice, request)
    advice = "" if choice is None else advice_on_windows(choice, view, table.facts, request)
    if advice:
        say(advice, aside=True)
    print_inspected(table.facts, request.output)
    if request.html is not None and request.output is OutputFormat.TABLE:
        say(f"page: {request.html}")


def _write_page(
    path: Path, inspected: Inspected, window: str | None, choice: Choice | None, request: Request
) -> None:
    """Write the page; `window` is what a window is, if the page says it."""
    from experiments.results.pages.trace_page import write_trace_page

    note = ""
    if window is not None and choice is not None and choice.width is not None:
        note = f"A window is {window}, {_narrowest(choice, inspected.facts)}; --window sets another width."
    names = [name.strip() for name in (request.clients or "").split(",") if name.strip()]
    counts = next(iter(inspected.counts.values()))
    write_trace_page(path, page_facts(inspected.facts, window, note), counts, names, request.min_samples)


def advice_on_windows(choice: Choice, view: View, facts: Facts, request: Request) -> str:
    """A line on the windows that were chosen, or on default ones that show too little; empty if they do.

    `facts` are those of the table.
    """
    all_, least = clients_are_called(facts)[1], request.min_samples
    if request.window != AUTO and (choice.width == 1 or len(facts["arrivals"]) < 2):
        return ""
    if choice.able == 0:
        return (
            f"windows: none of the {all_} has {2 * least} samples, enough for two windows with {least}; a "
            f"smaller --min-samples shows more"
        )
    if choice.width is None:
        return (
            f"windows: of no width do they show half of the {all_} twice with {least} samples, at most "
            f"{choice.shown} of {choice.able}; a smaller --min-samples shows more"
        )
    words, narrowest = view.in_words(choice.width), _narrowest(choice, facts)
    width = choice.width if isinstance(choice.width, str) else f"{choice.width:g}"
    if request.window == AUTO:
        return f"windows: {words}, {narrowest}; --window WIDTH sets another width"
    if request.html is not None:
        return f"windows of the page: {words}, {narrowest}; --window {width} prints the table by them too"
    return (
        f"windows: {view.in_words(None)} is too narrow for figures on label shift, which need {least} "
        f"samples in a window; --window {width} is wide enough"
    )


def _narrowest(choice: Choice, facts: Facts) -> str:
    all_ = clients_are_called(facts)[1]
    return (
        f"the narrowest width that shows half of the {all_} twice or more ({choice.shown} of {choice.able})"
    )


def _check(request: Request) -> None:
    if request.clients is not None and request.html is None:
        raise InputError("--clients: chooses clients for the page; give --html as well")
    if request.html is not None and (request.html.suffix != ".html" or request.html.is_dir()):
        raise InputError(f"--html {request.html}: must be a file that ends in .html")
    if request.window is not None and request.step_width is not None:
        raise InputError("--window: give it or --step-width, not both; they set the same width")


def _width(request: Request) -> Width | None:
    """The width of windows that an option says; None for the default one, and for one that is chosen."""
    if request.window is not None:
        return None if request.window == AUTO else parse_width(request.window, "--window")
    return parse_width(request.step_width)


def _view(request: Request) -> View:
    of_folder = {"--step-width": request.step_width, "--since": request.since, "--until": request.until}
    of_config = {"--set": request.overrides, "--seed": request.seed}
    if request.path.is_dir():
        for option, value in of_config.items():
            if value not in (None, []):
                raise InputError(f"{option}: is for a configuration, but {request.path} is a folder")
        return FolderView(
            request.path,
            parse_bound("--since", request.since),
            parse_bound("--until", request.until),
            request.min_samples,
            request.min_windows,
            "--step-width" if request.window is None else "--window",
        )
    for option, value in of_folder.items():
        if value is not None:
            key = option.removeprefix("--").replace("-", "_")
            raise InputError(
                f"{option}: is for a trace folder, but {named(request.path)} is none; a configuration of the "
                f"source file has trace.{key} (--set trace.{key}=...)"
            )
    return ConfigView(
        request.path, request.overrides, request.data, request.seed, request.min_samples, request.min_windows
    )


def parse_width(text: str | None, option: str = "--step-width") -> Width | None:
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
        choices = ", ".join([*([AUTO] if option == "--window" else []), *CALENDAR])
        raise ConfigurationError(
            f"{option} {text}: must be {choices} or a number above 0, at most {MOST_DAYS:,}"
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
