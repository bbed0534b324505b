"""Which model is right for which true concept: the accuracy of every model on the tests of every concept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.arrays import Floats
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import COLOUR_BAR, blank_figure, thinned
from experiments.results.drawing.text_alternative import MOST_NAMED
from experiments.results.figures.figure import Figure
from experiments.results.reading.clusters_in_force import clusters_in_force
from experiments.results.reading.not_recorded import LOG_MODELS, refuse_without_model_accuracy
from experiments.results.tables.report import Report

MOST_DRAWN = 100
"""Most models, and most concepts, that are drawn; of more, as many are, evenly spread."""

MOST_WRITTEN = 20
"""Most concepts with which the accuracy is written in each cell."""

MOST_MODELS_NAMED = 5
"""Most models of a concept that the text alternative names, the best ones first."""

COLOURS = [(0, "#f7fafc"), (1, "#0072B2")]


def model_figure(record: RoundRecord) -> PlainFigure:
    """A row for each model, by the label of its cluster, a column for each concept; the best are in bold."""
    clusters, concepts, percent = accuracies(record)
    best = percent.max(axis=0).tolist()
    figure = blank_figure(min(170 + 30 * len(clusters), 900), x_title="true concept", y_title="cluster")
    written = [
        [
            f"<b>{value:.1f}</b>" if value == most else f"{value:.1f}"
            for value, most in zip(row, best, strict=True)
        ]
        for row in percent.tolist()
    ]
    is_written = len(concepts) <= MOST_WRITTEN
    figure.add_heatmap(
        z=percent.astype(np.float32),
        x=[str(concept) for concept in concepts],
        y=[str(cluster) for cluster in clusters],
        zmin=0,
        zmax=100,
        colorscale=COLOURS,
        showscale=not is_written,
        colorbar={"title": {"text": "%"}, **COLOUR_BAR},
        xgap=2,
        ygap=2,
        text=written if is_written else None,
        texttemplate="%{text}" if is_written else None,
        hovertemplate="cluster %{y}, concept %{x}: %{z:.1f} %<extra></extra>",
    )
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    return figure


def accuracies(record: RoundRecord) -> tuple[list[int], list[int], Floats]:
    """(clusters, concepts, (clusters, concepts) accuracies in percent) of an evaluation, thinned."""
    found = record.accuracy_by_concept
    assert found is not None, "the record is of an evaluation that measured models by concept"
    concepts = sorted(found)
    shares = np.array([found[concept] for concept in concepts]).T
    rows, columns = thinned(len(record.clusters), MOST_DRAWN), thinned(len(concepts), MOST_DRAWN)
    return (
        [record.clusters[row] for row in rows.tolist()],
        [concepts[column] for column in columns.tolist()],
        100 * shares[np.ix_(rows, columns)],
    )


def in_words(title: str, record: RoundRecord) -> str:
    """The text alternative: of each concept the best models and their accuracies."""
    clusters, concepts, percent = accuracies(record)
    sentences = [
        f"Concept {concept}: "
        + ", ".join(
            f"cluster {clusters[row]} {column[row]:.1f} %"
            for row in (-column).argsort(kind="stable")[:MOST_MODELS_NAMED].tolist()
        )
        for concept, column in zip(concepts[:MOST_NAMED], percent.T, strict=False)
    ]
    more = [f"and {len(concepts) - MOST_NAMED} more concepts"] if len(concepts) > MOST_NAMED else []
    size = f"Map of {len(clusters)} models and {len(concepts)} concepts"
    return ". ".join([title, size, *sentences, *more]) + "."


def last_measured(report: Report, arm: Arm) -> RoundRecord | None:
    """The last evaluation of models by concept by the horizon, of the first seed; None without one."""
    records = report.summary.horizon.records(arm.runs[0])
    return next((record for record in reversed(records) if record.accuracy_by_concept), None)


def unused(arm: Arm, record: RoundRecord) -> list[int]:
    """The clusters of `record`, of the first seed, without a client at the end of its round."""
    until = [one for one in arm.runs[0].records if one.round <= record.round]
    members = clusters_in_force(until)[-1]
    assert members is not None, "the first record has them"
    empty: list[int] = np.setdiff1d(record.clusters, members).tolist()
    return empty


def plot_id(arm: Arm) -> str:
    """The id of the map of an arm."""
    return f"model-accuracy-{arm.position}"


def _plot(arm: Arm, record: RoundRecord) -> Plot:
    found = record.accuracy_by_concept or {}
    is_thinned = max(len(record.clusters), len(found)) > MOST_DRAWN
    sampled = f" At most {MOST_DRAWN} of each, evenly spaced, are drawn." if is_thinned else ""
    empty = unused(arm, record)
    names = ", ".join(map(str, empty[:MOST_NAMED]))
    without = f" No client is in cluster{'s' if len(empty) > 1 else ''} {names} then." if empty else ""
    caption = (
        "Rows are models, by the label of their cluster, and columns are true concepts. A cell is the "
        "accuracy in percent on all test samples of the concept, whichever model serves their clients; "
        f"the best of each concept is in bold. The last evaluation by the horizon, in round {record.round}; "
        f"concepts of which there are no tests then are left out."
        f"{without}{sampled}"
    )
    title = f"Who is right for what: {arm.name}, seed {arm.runs[0].seed}"
    return Plot(plot_id(arm), title, caption, model_figure(record), in_words(title, record))


def _plots(report: Report) -> Iterator[Plot]:
    for arm in report.arms:
        if (record := last_measured(report, arm)) is not None:
            yield _plot(arm, record)


FIGURE = Figure(
    "why",
    _plots,
    "no arm recorded the accuracy of its models by concept",
    needs=LOG_MODELS,
    refuse=lambda report: refuse_without_model_accuracy(
        report.experiment, report.directory.path, report.summary.words
    ),
)
