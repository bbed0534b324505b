"""The true drift: which concept each client had, or who began to receive other data, over data steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import NO_IDS, Floats32, Ints
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import (
    CLUSTER_COLOURS,
    EVENT_COLOUR,
    INK,
    MAX_POINTS,
    MOST_EVENTS,
    add_cells,
    blank_figure,
    blank_map,
    mark_column,
    thinned,
)
from experiments.results.figures.figure import Figure
from experiments.results.reading.header_truth import KnownOnsets, clients_of, known_onsets, onsets_in_words
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.report import Report
from traces.onsets import Onsets

MOST_CLIENTS = 200
"""Most clients that have a row; of more, as many are drawn, evenly spread."""

MOST_MARKS = 2000
"""Most onsets that are drawn one by one; of more, the share of clients at each data step is."""

HEIGHT = 420


def concept_figure(concepts: Ints, known: KnownOnsets | None) -> PlainFigure:
    """The true concept of each client: a row per client, a column per data step, a colour per concept.

    `concepts` (steps, num_clients) are those of training arrivals. Onsets are marked unless they are many.
    """
    num_steps, num_clients = concepts.shape
    present, codes = np.unique(concepts, return_inverse=True)
    codes = codes.reshape(concepts.shape)
    clients, steps = drawn_clients(num_clients), thinned(num_steps)
    # Sorted by their sequences of concepts, first step first: clients that change together are adjacent.
    clients = clients[np.lexsort(codes[::-1, clients])]
    colours = {
        str(concept): CLUSTER_COLOURS[index % len(CLUSTER_COLOURS)]
        for index, concept in enumerate(present.tolist())
    }
    figure = blank_map(HEIGHT, x_title="data step", y_title="clients, sorted by their sequence of concepts")
    add_cells(
        figure,
        codes[np.ix_(steps, clients)].T,
        colours,
        "concept",
        x=steps,
        y=clients,
        text="client %{y}, data step %{x}<extra></extra>",
    )
    marked = marked_onsets(known, clients)
    if marked is not None:
        # A column is as wide as its data step, and begins half a step before.
        _mark_onsets(figure, (marked.step - 0.5).astype(np.float32), marked.client, len(clients))
    _mark_mass_events(figure, known, num_clients)
    return figure


def onset_figure(known: KnownOnsets, num_clients: int, last_step: int) -> PlainFigure:
    """Who began to receive other data, and when: a row per client that did, a mark per onset.

    Of too many onsets, or if it is not known whose they are, the share of clients at each data step.
    """
    marked = marked_onsets(known, clients_with_onset(known))
    if marked is None:
        figure = blank_figure(HEIGHT, x_title="data step", y_title="clients with an onset (%)")
        steps = thinned(len(known.steps))
        figure.add_bar(
            x=known.steps[steps],
            y=(100 * known.counts[steps] / num_clients).astype(np.float32),
            marker={"color": CLUSTER_COLOURS[0]},
            hovertemplate="data step %{x}: %{y:.3g} %<extra></extra>",
        )
        figure.update_yaxes(range=[0, 100])
    else:
        figure = blank_map(
            HEIGHT, x_title="data step", y_title="clients with an onset, sorted by their first"
        )
        ids, first, of_id = np.unique(marked.client, return_index=True, return_inverse=True)
        # A row is added where its client first appears: with the marks in this order, rows are sorted too.
        order = np.lexsort((marked.step, marked.client, marked.step[first][of_id]))
        _mark_onsets(figure, marked.step[order], marked.client[order], len(ids), width=5)
    figure.update_xaxes(range=[-0.5, last_step + 0.5])
    _mark_mass_events(figure, known, num_clients)
    return figure


def drawn_clients(num_clients: int) -> Ints:
    """At most `MOST_CLIENTS` of all clients, evenly spread."""
    return thinned(num_clients, MOST_CLIENTS)


def clients_with_onset(known: KnownOnsets) -> Ints:
    """At most `MOST_CLIENTS` of the clients that have an onset, evenly spread; none if they are not known."""
    if known.onsets is None:
        return NO_IDS
    ids = np.unique(known.onsets.client)
    return ids[drawn_clients(len(ids))]


def marked_onsets(known: KnownOnsets | None, clients: Ints) -> Onsets | None:
    """The onsets of `clients`, each of which is marked; None if there are too many, or they are not known."""
    if known is None or known.onsets is None:
        return None
    of_them = np.isin(known.onsets.client, clients)
    marked = Onsets(known.onsets.step[of_them], known.onsets.client[of_them])
    return marked if 0 < len(marked) <= MOST_MARKS else None


def _mark_onsets(figure: PlainFigure, x: Ints | Floats32, clients: Ints, rows: int, width: int = 2) -> None:
    figure.add_scatter(
        x=x,
        y=clients,
        mode="markers",
        marker={
            "symbol": "line-ns",
            "size": min(14, max(3, 300 // rows)),
            "line": {"color": INK, "width": width},
        },
        showlegend=False,
        hovertemplate="client %{y}: onset<extra></extra>",
    )


def _mark_mass_events(figure: PlainFigure, known: KnownOnsets | None, num_clients: int) -> None:
    for step in _marked_events(known, num_clients):
        mark_column(figure, step, EVENT_COLOUR)


def _marked_events(known: KnownOnsets | None, num_clients: int) -> list[int]:
    """The data steps of mass events; none if they are too many to mark."""
    events = [] if known is None else list(known.mass_events(num_clients))
    return events if len(events) <= MOST_EVENTS else []


def _plots(report: Report) -> Iterator[Plot]:
    run = report.arms[0].runs[0]
    known, num_clients = known_onsets(run.header), clients_of(run.header)
    concepts = concepts_of_training(run)
    if num_clients is None or (known is None and concepts is None):
        return
    if concepts is not None:
        figure = concept_figure(concepts, known)
        title, shown = "Which concept each client had", _about_concepts(known, num_clients)
    else:
        assert known is not None, "there are onsets"
        figure = onset_figure(known, num_clients, max(run.records[-1].step, int(known.steps[-1])))
        title, shown = "Who began to receive other data, and when", _about_onsets(known)
    if report.most_seeds > 1:
        title = f"{title}: seed {run.seed}"
        shown.append(f"The same for all arms; one of {report.most_seeds} seeds is drawn.")
    words = [] if known is None else [f"{onsets_in_words(known, num_clients)}."]
    if _marked_events(known, num_clients):
        shown.append("Dashed lines under ▼ are mass events, onsets that at least half of the clients share.")
    alternative = " ".join([f"{title}.", "Horizontal axis: data step.", *words])
    yield Plot("true-drift", title, " ".join([*shown, *words]), figure, alternative)


def concepts_of_training(run: ReportedRun) -> Ints | None:
    """The true concepts of a run (steps, num_clients); None if its log has none, or always the same one."""
    rows = run.header.get("concepts")
    concepts: Ints | None = None if rows is None else np.array(rows)[:-1]
    return None if concepts is None or (concepts == concepts[0, 0]).all() else concepts


def _about_concepts(known: KnownOnsets | None, num_clients: int) -> list[str]:
    """Sentences on the figure of concepts."""
    shown = [
        "Each row is a client, read from left to right: its colour is the true concept of its newest "
        "training samples."
    ]
    if marked_onsets(known, drawn_clients(num_clients)) is not None:
        shown.append("Black marks are onsets: the client begins to receive data of another distribution.")
    if num_clients > MOST_CLIENTS:
        shown.append(f"{MOST_CLIENTS} of {num_clients:,} clients, evenly spread, are drawn.")
    return shown


def _about_onsets(known: KnownOnsets) -> list[str]:
    """Sentences on the figure of onsets."""
    clients = clients_with_onset(known)
    if marked_onsets(known, clients) is None:
        return [
            "The share of clients that begin to receive data of another distribution at each data step"
            + ("." if len(known.steps) <= MAX_POINTS else f", of which {MAX_POINTS} are drawn.")
        ]
    assert known.onsets is not None, "they are marked"
    shown = [
        "Each row is a client, and each mark a data step at which it begins to receive data of another "
        "distribution: an onset. Clients without one have no row."
    ]
    if known.onsets.num_clients > len(clients):
        shown.append(f"{len(clients)} of {known.onsets.num_clients:,} clients, evenly spread, are drawn.")
    return shown


FIGURE = Figure(
    "for-whom", _plots, "no client begins to receive other data, or the logs do not tell which do"
)
