"""`driftscale traces inspect`: the facts about a trace, as plain values by name, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from emulator.errors import naming, shorten
from emulator.seeding import RandomStreams
from experiments.cli.output import OutputFormat, print_json, print_table
from experiments.reading import load_without_torch
from experiments.results.pages.trace_facts import TraceFacts
from experiments.results.reading.header_truth import steps_in_words
from experiments.shipped import named
from traces.arrivals import SPLITS
from traces.calendar import CalendarWidth
from traces.files import ARRIVALS, ArrivalRows, open_folder
from traces.files.windows import windows_of_rows
from traces.inspection.label_shift import label_shift, observed_windows
from traces.inspection.observations import Observations, trace_observations
from traces.inspection.presence import arrivals, presence, samples_of_clients, samples_of_labels
from traces.inspection.trace_folder import folder_observations
from traces.inspection.truth import Truth, folder_truth, trace_truth
from traces.sources import TraceContext

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


def inspected_config(
    path: Path,
    overrides: Sequence[str],
    data: Sequence[Path],
    seed: int | None,
    min_samples: int,
    min_windows: int,
) -> Inspected:
    """Facts about the trace that a configuration describes.

    Args:
        path: The configuration.
        overrides: The --set options.
        data: The folders of --data.
        seed: The seed of the trace; None for the first one of the configuration.
        min_samples: Samples that a client needs in a window to count as observed.
        min_windows: The clients observed in at least this many windows are counted.

    Raises:
        InputError: the trace cannot be drawn.
    """
    experiment, locate = load_without_torch(path, overrides, data)
    chosen = experiment.seeds[0] if seed is None else seed
    context = TraceContext(experiment.round.rounds, RandomStreams(chosen), locate)
    with naming(named(path)):
        source = experiment.trace.build()
        observed = source.observations(context)
        about = {"name": experiment.name, "source": experiment.trace.kind}
        if observed is not None:
            counts = {"observed": observed}
            facts = {**about, "of": "observations", **_facts(counts, Truth(), min_samples, min_windows)}
            return Inspected(facts, counts)
        trace = source.build(context)
    of_split: dict[str, Observations] = {split: trace_observations(trace, split) for split in SPLITS}
    truth = trace_truth(trace)
    facts = {**about, "of": "samples", "seed": chosen, **_facts(of_split, truth, min_samples, min_windows)}
    return Inspected(facts, of_split)


def inspected_folder(
    path: Path,
    width: float | CalendarWidth | None,
    since: date | int | None,
    until: date | int | None,
    min_samples: int,
    min_windows: int,
) -> Inspected:
    """Facts about the rows of a trace folder.

    Args:
        path: The folder.
        width: The width of a window, as the source `file` has it.
        since: Earlier rows are left out; a date, a step or a rank.
        until: Rows from then on are left out.
        min_samples: Samples that a client needs in a window to count as observed.
        min_windows: The clients observed in at least this many windows are counted.

    Raises:
        InputError: it is not a trace folder, is damaged, or a setting does not fit it.
    """
    folder = open_folder(path)
    rows, facts = folder.rows, folder.facts
    windows = windows_of_rows(rows, path / ARRIVALS, width=width, since=since, until=until, key=_as_option)
    counts = folder_observations(folder, windows)
    about = {
        "name": path.resolve().name,
        "source": "trace folder",
        "of": "rows",
        "windows": _in_words(rows, width, since),
        "origin": facts.origin,
        "licence": facts.licence,
        "shape": list(folder.features.shape),
        "type": str(folder.features.values.dtype),
        "samples_in_the_file": len(folder.features),
        "rows": len(rows),
        "rows_left_out": int((~windows.kept).sum()),
        "sha256": folder.digests,
    }
    truth = folder_truth(folder, windows)
    return Inspected({**about, **_facts(counts, truth, min_samples, min_windows)}, counts)


def _as_option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _in_words(rows: ArrivalRows, width: float | CalendarWidth | None, since: date | int | None) -> str:
    """What the windows of the rows are; `width` fits them."""
    if rows.when == "step":
        return "step" if width in (None, 1) else f"{width:g} steps"
    start = int(rows.at.min()) if since is None else since
    if rows.when == "order":
        return f"{width:g} ranks of each client, from {start}"
    if not isinstance(start, date):
        start = (datetime(1970, 1, 1) + timedelta(microseconds=start)).date()
    if isinstance(width, str):
        return f"{width}, from {start:%Y-%m}"
    return f"{'day' if width in (None, 1) else f'{width:g} days'}, from {start}"


def _facts(counts: Mapping[str, Observations], truth: Truth, min_samples: int, min_windows: int) -> Facts:
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
    one, all_ = _clients_are_called(facts)
    print_table([{"what": key, "value": str(value)} for key, value in _about_rows(facts).items()])
    quantiles = [
        {"samples": split, **{name: float(value) for name, value in values.items()}}
        for split, values in facts["samples_of_a_client"].items()
    ]
    print_table(quantiles, f"samples of a {one}: percentiles")
    print_table(_label_rows(facts["labels"]), "labels")
    print_table(_arrival_rows(facts["arrivals"], all_), "arrivals by data step")
    print_table(_shift_rows(facts["label_shift"], one), "label shift: L1 distances of label shares, 0 to 2")


def page_facts(facts: Facts) -> TraceFacts:
    """The facts as the page shows them."""
    one, _ = _clients_are_called(facts)
    about = [(what, str(value)) for what, value in _about_rows(facts).items()]
    shift = [(row["what"], row["value"]) for row in _shift_rows(facts["label_shift"], one)]
    windows = f"window ({facts['windows']})" if "windows" in facts else "data step"
    return TraceFacts(
        name=facts["name"],
        lead=f"{facts['clients']:,} {one}s, {len(facts['labels'])} labels, {len(facts['arrivals']):,} "
        f"windows.",
        tables=[("The trace", about), ("Label shift: L1 distances of label shares, 0 to 2", shift)],
        one=one,
        of_windows=windows,
    )


def _clients_are_called(facts: Facts) -> tuple[str, str]:
    return ("group", "groups") if facts["of"] == "observations" else ("client", "clients")


def _about_rows(facts: Facts) -> Facts:
    """The first table: what is shown, and numbers of clients, samples and labels."""
    _, all_ = _clients_are_called(facts)
    played = {
        "observations": "the observations in the table",
        "rows": "the rows of the trace folder",
    }
    of_folder = {}
    if facts["of"] == "rows":
        of_folder = {
            "origin": facts["origin"] or "-",
            "licence": facts["licence"] or "-",
            "a sample": f"{facts['type']}, {' x '.join(map(str, facts['shape']))}",
            "samples in features.npy": f"{facts['samples_in_the_file']:,}",
            "rows in arrivals.parquet": f"{facts['rows']:,}",
            "rows left out": f"{facts['rows_left_out']:,}",
            "a window": facts["windows"],
            **{f"sha256 of {name}": digest for name, digest in facts["sha256"].items()},
        }
    return {
        "name": facts["name"],
        "source": facts["source"],
        "figures on": played[facts["of"]] if facts["of"] in played else f"the trace of seed {facts['seed']}",
        **of_folder,
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


def _arrival_rows(steps: Sequence[Facts], who: str) -> list[Facts]:
    """A row for each data step, or for each of at most `MOST_STEPS` stretches of equal length.

    In a stretch, `clients` are a mean and all other numbers are sums.
    """
    length = max(1, -(-len(steps) // MOST_STEPS))
    rows = []
    for first in range(0, len(steps), length):
        stretch = steps[first : first + length]
        begin, end = stretch[0]["step"], stretch[-1]["step"]
        rows.append(
            {
                "step": str(begin) if begin == end else f"{begin} to {end}",
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
