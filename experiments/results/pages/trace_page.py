"""Assembles the page of a trace, which stands alone: tables, and the plots of `figures.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from emulator.errors import InputError
from emulator.storage.checkpoints import write_durably
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.plotly_js import plotly_js
from experiments.results.pages.scripted_page import page_with_nonce
from experiments.results.pages.trace_facts import TraceFacts
from experiments.results.pages.trace_figures import (
    Area,
    distance_figure,
    drawn_labels,
    sampled_clients,
    shares_figure,
    stretch_of,
)
from traces.inspection.label_shift import observed_windows
from traces.inspection.observations import Observations
from traces.inspection.over_time import (
    chosen_clients,
    distance_from_start,
    of_different_size,
    shares_over_time,
)
from traces.inspection.presence import samples_of_clients

MOST_CLIENTS_BY_DEFAULT = 4
MOST_CHOSEN = 40


def write_trace_page(
    path: Path, facts: TraceFacts, observations: Observations, clients: Sequence[str], min_samples: int
) -> None:
    """Write the page of a trace. The same trace gives the same bytes.

    Args:
        path: the file, which is replaced if it exists.
        facts: what the page says besides its plots.
        observations: the counts of labels that are drawn.
        clients: the clients whose label shares are drawn, by name; if empty, a few of different size.
        min_samples: samples that a client needs in a window to be drawn there, at least 1.

    Raises:
        InputError: there is no such client, too many are named, or the file cannot be written.
    """
    if len(clients) > MOST_CHOSEN:
        raise InputError(f"--clients: names {len(clients)} clients; at most {MOST_CHOSEN} are drawn")
    chosen = (
        chosen_clients(observations, clients)
        if clients
        else of_different_size(observations, MOST_CLIENTS_BY_DEFAULT, min_samples)
    )
    shares = [shares_over_time(observations, client, min_samples) for client in chosen]
    labels = drawn_labels(shares, observations.label_names) if shares else []
    totals = samples_of_clients(observations)
    first, windows = observations.first_step, observations.num_windows
    plots = []
    for client in shares:
        figure = shares_figure(
            client, labels, first_step=first, num_windows=windows, x_title=facts.of_windows
        )
        seen = f"{len(client.windows):,} windows with {min_samples} or more."
        caption = f"{totals[client.client]:,.0f} samples; {seen}"
        title = f"{facts.one} {_name(observations, client.client)}"
        plots.append(Plot(f"shares-{client.client}", title, caption, figure))
    page = page_with_nonce(
        "trace_page.html",
        facts=facts,
        shares_note=_shares_note(facts, labels, clients, min_samples, windows),
        labels=labels,
        plots=plots,
        map=_map(facts, observations, min_samples),
        plotly_js=Markup(plotly_js()),
    )
    try:
        write_durably(path, page)
    except OSError as error:
        raise InputError(f"--html {path}: cannot be written ({error.strerror})") from error


def _shares_note(
    facts: TraceFacts, labels: Sequence[Area], named: Sequence[str], min_samples: int, windows: int
) -> str:
    if not labels:
        return (
            f"No {facts.one} that is shown has {min_samples} samples in a {facts.window}; a smaller "
            f"--min-samples, or a wider --window, shows more."
        )
    which = "" if named else f"A few {facts.one}s of different size; --clients chooses others. "
    return (
        f"{which}Shares of a {facts.one}'s samples in each {facts.window}; blank where it has fewer than "
        f"{min_samples}.{_stretched(windows)}"
    )


def _map(facts: TraceFacts, observations: Observations, min_samples: int) -> Plot | None:
    """The map of distances; None if no client is observed in any window."""
    seen = np.flatnonzero(observed_windows(observations, min_samples))
    if len(seen) == 0:
        return None
    shown = sampled_clients(seen)
    of_all = f" {len(shown)} of {len(seen):,} {facts.one}s are shown, drawn at random."
    sampled = of_all if len(shown) < len(seen) else ""
    return Plot(
        "distances",
        f"Distance of each {facts.one} from its start",
        f"L1 distance (0 to 2) of the label shares in a {facts.window} from those in the first window in "
        f"which the {facts.one} has {min_samples} samples or more; blank where it has fewer. "
        f"{facts.one.capitalize()}s without such a window are left out.{sampled}"
        f"{_stretched(observations.num_windows)}",
        distance_figure(
            distance_from_start(observations, shown, min_samples),
            [_name(observations, client) for client in shown.tolist()],
            first_step=observations.first_step,
            x_title=facts.of_windows,
            one=facts.one,
        ),
    )


def _stretched(windows: int) -> str:
    stretch = stretch_of(windows)
    drawn = f" {stretch} windows are drawn as one, the mean of those that are not blank."
    return drawn if stretch > 1 else ""


def _name(observations: Observations, client: int) -> str:
    return observations.client_names[client] if observations.client_names else str(client)
