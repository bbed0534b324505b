"""`driftscale traces inspect`: the facts about a trace, as plain values by name, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from emulator.errors import shorten
from experiments.cli.output import OutputFormat, print_json, print_table
from experiments.results.pages.trace_facts import TraceFacts
from experiments.results.reading.header_truth import steps_in_words
from traces.inspection.label_shift import label_shift, observed_windows
from traces.inspection.observations import Observations
from traces.inspection.presence import arrivals, presence, samples_of_clients, samples_of_labels
from traces.inspection.truth import Truth

Facts = dict[str, Any]

PERCENTILES = (0, 5, 25, 50, 75, 95, 100)

PRESENCE = {
    "from_the_first_step": "receive samples from the first step on",
    "join_later": "join later",
    "leave_before_the_last_step": "receive none in the last step",
    "with_gaps": "receive none for a while",
    "never": "never receive any",
}
"""What the table says about the numbers of clients among the facts."""

MOST_LABELS, MOST_STEPS = 30, 20  # rows of the tables
MOST_LETTERS = 50  # letters of a label's name in a table


@dataclass(frozen=True)
class Inspected:
    """The facts about a trace, and the counts of labels of which they are, by split."""

    facts: Facts
    counts: Mapping[str, Observations]


def facts_of(counts: Mapping[str, Observations], truth: Truth, min_samples: int, min_windows: int) -> Facts:
    """The facts about `counts` by split; all but the numbers of samples are of the first of them."""
    first = next(iter(counts.values()))
    when, each = presence(first), arrivals(first)
    of_clients = {split: samples_of_clients(rows) for split, rows in counts.items()}
    steps = range(first.first_step, first.first_step + first.num_windows)
    return {
        "clients": first.num_clients,
        "samples": {split: _number(totals.sum()) for split, totals in of_clients.items()},
        "samples_of_a_client": {split: _quantiles(totals) for split, totals in of_clients.items()},
        "labels": _labels(counts),
        "truth": asdict(truth),  # null where it is not known
        "arrivals": [
            {"step": step, **{name: _number(column[row]) for name, column in each._asdict().items()}}
            for row, step in enumerate(steps)
        ],
        "presence": {
            "from_the_first_step": int((when.first == 0).sum()),
            "join_later": int((when.first > 0).sum()),
            "leave_before_the_last_step": int(((when.last >= 0) & (when.last < first.num_windows - 1)).sum()),
            "with_gaps": int((when.gaps > 0).sum()),
            "never": int((when.first < 0).sum()),
            # By client, in order of client ids.
            "client_names": list(first.client_names),
            "first_step": [_step(window, first) for window in when.first.tolist()],
            "last_step": [_step(window, first) for window in when.last.tolist()],
            "steps_between_without_samples": when.gaps.tolist(),
        },
        "label_shift": {
            **asdict(label_shift(first, min_samples)),
            "min_windows": min_windows,
            "clients_with_min_windows": int((observed_windows(first, min_samples) >= min_windows).sum()),
        },
    }


def _labels(counts: Mapping[str, Observations]) -> list[Facts]:
    """Each label with its name, if it has one, and its number of samples of each split."""
    totals = {split: samples_of_labels(rows).tolist() for split, rows in counts.items()}
    first = next(iter(counts.values()))
    names = [*first.label_names, *[None] * (first.num_labels - len(first.label_names))]
    return [
        {"label": label, "name": name, **{split: _number(total[label]) for split, total in totals.items()}}
        for label, name in enumerate(names)
    ]


def _quantiles(totals: np.ndarray) -> dict[str, float | int]:
    values = np.quantile(totals, [percent / 100 for percent in PERCENTILES]).tolist()
    return {f"p{percent}": _number(value) for percent, value in zip(PERCENTILES, values, strict=True)}


def _number(value: float) -> float | int:
    """A whole number as an int: counts of observations may have fractions."""
    return int(value) if float(value).is_integer() else float(value)


def _step(window: int, counts: Observations) -> int | None:
    """The data step of a window; None for -1."""
    return None if window < 0 else window + counts.first_step


# -- tables -------------------------------------------------------------------------------------------------


def print_inspected(facts: Facts, output: OutputFormat) -> None:
    """Print the facts as tables, of which long ones are condensed, or as JSON."""
    if output is OutputFormat.JSON:
        print_json(facts)
        return
    one, all_ = clients_are_called(facts)
    print_table([{"what": key, "value": str(value)} for key, value in _about_rows(facts).items()])
    quantiles = [
        {"samples": split, **{name: float(value) for name, value in values.items()}}
        for split, values in facts["samples_of_a_client"].items()
    ]
    print_table(quantiles, f"samples of a {one}: percentiles")
    print_table(_label_rows(facts["labels"]), "labels")
    # A row of a folder arrives at the data steps of a source with windows of that width.
    step = "step" if facts["of"] == "rows" or "windows" not in facts else "window"
    title = "arrivals by data step" if step == "step" else "arrivals by window"
    print_table(_arrival_rows(facts["arrivals"], all_, step), title)
    print_table(_shift_rows(facts["label_shift"], one), "label shift: L1 distances of label shares, 0 to 2")


def page_facts(facts: Facts, window: str | None = None, note: str = "") -> TraceFacts:
    """The facts as the page shows them.

    Args:
        facts: The facts.
        window: What a window is, for captions; None where they do not say it.
        note: A sentence on the windows, after that on the trace.
    """
    one, _ = clients_are_called(facts)
    about = [(what, str(value)) for what, value in _about_rows(facts).items()]
    shift = [(row["what"], row["value"]) for row in _shift_rows(facts["label_shift"], one)]
    windows = f"window ({facts['windows']})" if "windows" in facts else "data step"
    return TraceFacts(
        name=facts["name"],
        lead=f"{facts['clients']:,} {one}s, {len(facts['labels'])} labels, {len(facts['arrivals']):,} "
        f"windows.{f' {note}' if note else ''}",
        tables=[("The trace", about), ("Label shift: L1 distances of label shares, 0 to 2", shift)],
        one=one,
        of_windows=windows,
        window="window" if window is None else f"window of {window}",
    )


def clients_are_called(facts: Facts) -> tuple[str, str]:
    return ("group", "groups") if facts["of"] == "observations" else ("client", "clients")


def _about_rows(facts: Facts) -> Facts:
    """The first table: what is shown, and numbers of clients, samples and labels."""
    _, all_ = clients_are_called(facts)
    played = {
        "observations": "the observations in the table",
        "rows": "the rows of the trace folder",
    }
    of_folder: Facts = {}
    if facts["of"] == "rows":
        of_folder = {
            "origin": facts["origin"] or "-",
            "licence": facts["licence"] or "-",
            "a sample": f"{facts['type']}, {' x '.join(map(str, facts['shape']))}",
            "samples in features.npy": f"{facts['samples_in_the_file']:,}",
            "rows in arrivals.parquet": f"{facts['rows']:,}",
            "rows left out": f"{facts['rows_left_out']:,}",
            "a window": facts["windows"],
            **{
                key: ", ".join(f"{name} {value}" for name, value in facts[key].items())
                for key in ("tokens", "targets", "objective")
                if key in facts
            },
            **{f"sha256 of {name}": digest for name, digest in facts["sha256"].items()},
        }
    return {
        "name": facts["name"],
        "source": facts["source"],
        "figures on": played[facts["of"]] if facts["of"] in played else f"the trace of seed {facts['seed']}",
        **of_folder,
        **({"a window": facts["windows"]} if "windows" in facts and not of_folder else {}),
        all_: facts["clients"],
        **{f"{all_} that {text}": facts["presence"][name] for name, text in PRESENCE.items()},
        **{f"samples: {split}": f"{number:,}" for split, number in facts["samples"].items()},
        "labels": len(facts["labels"]),
        **_truth_rows(facts["truth"]),
    }


def _truth_rows(truth: Facts) -> Facts:
    """How many concepts there are, and who begins to receive other data; empty where neither is known."""
    rows: Facts = {}
    if truth["concepts"] is not None:
        rows["concepts"] = truth["concepts"]
    if truth["onsets"] is not None:
        rows["onsets, of a client that begins to receive other data"] = f"{truth['onsets']:,}"
        rows["clients with an onset"] = f"{truth['clients_with_onset']:,}"
        shares = {event["step"]: f"{100 * event['share']:.0f} %" for event in truth["mass_events"]}
        rows["mass events: onsets of half of the clients or more"] = steps_in_words(shares) or "none"
    return rows


def _label_rows(labels: Sequence[Facts]) -> list[Facts]:
    """A row for each label, with its name as a Python literal; those beyond `MOST_LABELS` are one row.

    A terminal obeys none of the control characters of a literal.
    """
    is_named = any(label["name"] is not None for label in labels)
    splits = [key for key in labels[0] if key not in ("label", "name")] if labels else []
    shown = labels if len(labels) <= MOST_LABELS else labels[: MOST_LABELS - 1]
    rows: list[Facts] = [
        {
            "label": str(label["label"]),
            **({"name": _literal(label["name"])} if is_named else {}),
            **{split: float(label[split]) for split in splits},
        }
        for label in shown
    ]
    rest = labels[len(shown) :]
    if rest:
        rows.append(
            {
                "label": f"{len(rest)} more",
                **({"name": "-"} if is_named else {}),
                **{split: float(sum(label[split] for label in rest)) for split in splits},
            }
        )
    return rows


def _literal(name: str | None) -> str:
    return "-" if name is None else repr(shorten(name, MOST_LETTERS))


def _arrival_rows(steps: Sequence[Facts], who: str, step: str) -> list[Facts]:
    """A row for each data step, or for each of at most `MOST_STEPS` stretches of equal length.

    `step` is the name of their column. In a stretch, `clients` are a mean and all other numbers are sums.
    """
    length = max(1, -(-len(steps) // MOST_STEPS))
    rows = []
    for first in range(0, len(steps), length):
        stretch = steps[first : first + length]
        begin, end = stretch[0]["step"], stretch[-1]["step"]
        rows.append(
            {
                step: str(begin) if begin == end else f"{begin} to {end}",
                "samples": float(sum(step["samples"] for step in stretch)),
                f"{who} that receive some": sum(step["clients"] for step in stretch) / len(stretch),
                "their first ones": sum(step["joining"] for step in stretch),
                "their last ones": sum(step["leaving"] for step in stretch),
            }
        )
    return rows


def _shift_rows(shift: Facts, one: str) -> list[Facts]:
    """The figures on label shift, each with what it is of."""
    rows = {
        f"observed: a {one} in a window with {shift['min_samples']} samples or more": shift["cells"],
        f"windows in which a {one} was observed": shift["windows"],
        f"{one}s observed in {shift['min_windows']} windows or more": shift["clients_with_min_windows"],
        f"pairs of consecutive observed windows of a {one}": shift["pairs"],
        "distance of such a pair: mean": shift["consecutive_mean"],
        "distance of such a pair: 90th percentile": shift["consecutive_p90"],
        f"distance of a {one} from the mean of all in a window: mean": shift["between_clients"],
        "distance of the mean of all in the last window from that in the first": shift["first_to_last"],
    }
    return [{"what": key, "value": _rounded(value)} for key, value in rows.items()]


def _rounded(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
