"""The reference of frames: the unit and the meaning of every column, and when it is missing.

Columns of rounds are described where they are declared, by the fields of `RoundRecord`; all others here. A
name in angle brackets stands for several, as `<figure>_low`; it imports no pandas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from emulator.storage.round_schema import RoundField
from emulator.storage.runlog import SCHEMA, WHOLE_ROUNDS
from experiments.results.tables import all_quantities
from experiments.results.tables.quantities import BYTES, POINTS, SECONDS, SHARE, Quantity

NO_DISPATCH = "if all runs are such"
NO_INTERVAL = "with under three seeds, and of arms whose trigger may fire or not, or beside one"
NOTHING_COMPARED = "if no trigger compared anything"
UNCOMPARED = "if no trigger compared centres"
NOT_PAIRWISE = "if no trigger `pairwise` compared clients"
UNTRIED = "if no numbers of clusters were tried"


@dataclass(frozen=True)
class Column:
    """What a column holds.

    Attributes:
        meaning: What its values say.
        unit: Their unit; empty for names, truth values and lists.
        missing: When a value is missing; empty if it never is.
        absent: When the whole column is; empty if it always is there.
    """

    meaning: str
    unit: str = ""
    missing: str = ""
    absent: str = ""


ITS_OWN, DISTANCE = "that of the figure", "clusterer's distance"
UNMEASURED, NO_FIGURE = "if it was not measured", "if no arm has the figure"
UNLOGGED = "if no run logged it (round.log_client_accuracy)"
UNSHOWN, UNTIMED = "if concepts do not show the drift", "without `round.seconds_per_round`"
IN_ALL, ALONE, NO_KEY = "if all runs were", "for a single run directory", "where an arm has no such key"

ARM = Column("name of the arm; in the order of the configuration")
SEED = Column("seed of the run")
RUN: Mapping[str, Column] = {"arm": ARM, "seed": SEED}

IN_FOLDERS: Mapping[str, Column] = {
    "experiment": Column("name of the run directory", absent=ALONE),
    "<key>": Column(
        "value of a key in which the configurations differ, by its last part, or by the whole key where that "
        "is ambiguous",
        missing=NO_KEY,
        absent=ALONE,
    ),
}
"""The first columns of every frame of a folder of run directories."""


@cache
def figures() -> dict[str, Column]:
    """The figures without a target, as in `summary.json`; up to the horizon, unless of the whole run."""
    return columns_of(all_quantities().values())


def columns_of(quantities: Iterable[Quantity], prefix: str = "") -> dict[str, Column]:
    """The columns of those that frames have, by their keys behind `prefix`."""
    return {f"{prefix}{of.key}": Column(of.meaning, of.unit, of.missing) for of in quantities if of.meaning}


_SUMMARY: Mapping[str, Column] = {
    **RUN,
    "figure": Column("name of the figure, as in `summary.json`"),
    "target": Column(
        "target accuracy, or `reference`: what the first arm has at the horizon",
        SHARE,
        "for figures without a target",
    ),
    "value": Column("the figure", ITS_OWN, "if it was not measured, or only bounds of it are known"),
    "low": Column("its lower bound; `value`, if that is known", ITS_OWN, UNMEASURED),
    "high": Column(
        "its upper bound, infinite if there is none; `value`, if that is known", ITS_OWN, UNMEASURED
    ),
    "status": Column(
        "how well it is known: `=`, `>=` (a lower bound), `<=` (an upper one), `range` (both), "
        "`undetermined`, or `not measured`"
    ),
    "over": Column(
        "the arm that a gain is over", missing="where that is the reference arm, and for other figures"
    ),
}

_TABLE: Mapping[str, Column] = {
    "arm": ARM,
    "seeds": Column("seeds that the figures are over: those that the reference arm has too", "seeds"),
    "<figure>": Column(
        "mean over seeds of the figure", ITS_OWN, "if some seed has no value", "if no arm has one"
    ),
    "<figure>_low": Column(
        "lower end of its 95 % interval, Student's t over seeds", ITS_OWN, NO_INTERVAL, NO_FIGURE
    ),
    "<figure>_high": Column("upper end of that interval", ITS_OWN, "as `<figure>_low`", NO_FIGURE),
    "<figure>_over": Column(
        "the arm that a gain is over",
        missing="for an arm without the figure",
        absent="for gains over the reference arm, and for other figures",
    ),
}

TRIGGER: Mapping[str, Column] = {
    "shift": Column("how far the centre that moved farthest moved", DISTANCE),
    "mean_distance": Column("mean distance between two centres", DISTANCE, "with a single centre"),
    "threshold": Column(
        "share of the mean distance from which the trigger fires; between squared distances it is squared "
        "too",
        "factor",
        "if the trigger never fires",
    ),
    "clusters": Column("clusters before any re-clustering", "clusters"),
    "fired": Column("whether all clients were to be clustered anew"),
    "largest_distance": Column(
        "largest distance between two clients of one cluster", DISTANCE, "if no cluster has two clients"
    ),
    "delta": Column("limit above which the trigger fires", DISTANCE),
}
"""The fields of what triggers compare, by their names in a line of the log; in a frame more are missing."""

NAMED = Column(
    "a number that a trigger named itself; a list with one for each cluster, if it is one in some round",
    "the trigger's own",
    "in rounds in which the trigger did not name it",
    "if no trigger named it",
)

NOTED = Column(
    "a number that a part noted, such as an aggregator's `disparity`",
    "the part's own",
    "in rounds in which no part noted it",
    "if no part noted it",
)

CLIENT_NAME = Column(
    "its name in the trace; its number, if the trace has no names",
    missing="if its run was recorded without",
    absent=IN_ALL,
)
DEVICE_ID = Column(
    "id of its device in the profile's table",
    missing="without a table, and if its run was recorded without",
    absent=IN_ALL,
)

_CLIENTS: Mapping[str, Column] = {
    **RUN,
    "client": Column(
        "id of the client, from 0, in the order of names: texts by letters, `wearer-10` before `wearer-2`; "
        "whole numbers by size"
    ),
    "client_name": CLIENT_NAME,
    "accuracy": Column(
        "its accuracy at the last evaluation by the horizon", SHARE, "if it was not scored then", UNLOGGED
    ),
    "label": Column(
        "label of which it held most training samples then, the lowest of several",
        missing="if it was not scored then, or holds none",
        absent=UNLOGGED,
    ),
    "cluster": Column("label of its cluster at the horizon", missing="if it is in none"),
    "participations": Column("visits that it began by the horizon", "visits"),
    "completed": Column("visits that it completed by the horizon", "visits"),
    "device": Column("row of its device in the profile's table", missing="without a table"),
    "device_id": DEVICE_ID,
    "seconds_per_sample": Column("what its device takes to train on a sample", "virtual seconds per sample"),
    "download_bytes_per_s": Column("its bandwidth down", "bytes per virtual second"),
    "upload_bytes_per_s": Column("its bandwidth up", "bytes per virtual second"),
    "latency_s": Column("its latency", SECONDS),
    "device_factor": Column(
        "factor on all its computing, the same for every arm with this model",
        absent="without `devices.jitter.model`",
    ),
}

_VISITS: Mapping[str, Column] = {
    **RUN,
    "round": Column("number of the round, from 0"),
    "visit": Column("number of the visit in its run, from 0"),
    "client": Column("id of the client"),
    "client_name": CLIENT_NAME,
    "device": Column("row of its device in the profile's table", missing="without a table"),
    "device_id": DEVICE_ID,
    "lane": Column(
        "number of the lane that it was drawn from, or that continues that; -1: abandoned, as no model "
        "continues its own"
    ),
    "models": Column("labels of the clusters whose models it trained, a list"),
    "dispatched_s": Column("when the client was sent its models", SECONDS),
    "requests_s": Column("what client requests that it had to answer first take, as planned", SECONDS),
    "download_s": Column("what the download takes, with its jitter", SECONDS),
    "compute_s": Column(
        "what local training takes, with the predictions of clients that stop early, as known at dispatch",
        SECONDS,
    ),
    "upload_s": Column("what the upload takes, with its jitter", SECONDS),
    "end_s": Column(
        "when the visit ended, or its client was gone, which a pacing with a time-out notices later", SECONDS
    ),
    "outcome": Column(
        "`completed`, `abandoned` (its lane closed first, it timed out or was too stale, or its model or the "
        "run ended), or `dropped` (offline or crashed)"
    ),
    "crashed": Column("whether its device crashed"),
    "download_bytes": Column("bytes downloaded until it ended, with packets sent again", BYTES),
    "upload_bytes": Column("bytes uploaded until it ended, with packets sent again", BYTES),
    "payload_bytes": Column("both together, without packets sent again", BYTES),
    "dispatch": Column(
        "number of the dispatch that it began with, from 0", missing=WHOLE_ROUNDS, absent=NO_DISPATCH
    ),
    "staleness": Column(
        "server steps that its lane made between its dispatch and the step that handed it over",
        "server steps",
        WHOLE_ROUNDS,
        NO_DISPATCH,
    ),
}

DETECTOR = Column("name of the detector; of one at several thresholds with that, as `ddm@2.5`")

NOT_FOUND = "if no drift was found"
NO_DRIFTS = "if there was no drift"
UNDECIDED = "without decisions"
MISSED = "if the drift was missed"
NOT_ASKED = "if no decision was made in time"

_DETECTION: Mapping[str, Column] = {
    **RUN,
    "detector": DETECTOR,
    "watched": Column(
        "what the detector watches: `representation`, where it decides as a round opens, or `arrivals` or "
        "`training`, where times count to the close of the round"
    ),
    "drifts": Column("drifts that begin in scored rounds, of a client in a round", "drifts"),
    "found": Column(
        "of these, those with a true flag: the first since the drift, within the tolerance", "drifts"
    ),
    "never_asked": Column(
        "those after which no decision was made about the client within the tolerance, and before its next "
        "drift",
        "drifts",
    ),
    "recall_asked": Column("`found` over the drifts that were asked about", SHARE, "if none was asked about"),
    "recall_all": Column("`found` over `drifts`", SHARE, NO_DRIFTS),
    "delay_rounds_mean": Column("rounds from a found drift to its flag, the mean", "rounds", NOT_FOUND),
    "delay_rounds_median": Column("rounds from a found drift to its flag, the median", "rounds", NOT_FOUND),
    "delay_rounds_90": Column("the rounds that 90 % of found drifts do not exceed", "rounds", NOT_FOUND),
    "delay_s_median": Column(
        "time from the opening of the round in which a found drift begins to its flag, the median",
        SECONDS,
        NOT_FOUND,
    ),
    "delay_s_90": Column("the time that 90 % of found drifts do not exceed", SECONDS, NOT_FOUND),
    "asked_s_median": Column(
        "the part of that time up to the first decision about the client, the median", SECONDS, NOT_FOUND
    ),
    "found_s_median": Column("the part from there to the flag, the median", SECONDS, NOT_FOUND),
    "false_alarms": Column(
        "flags of clients without a drift so far, or whose newest drift was not found in time", "flags"
    ),
    "repeats": Column("further flags of a drift that was found, neither true nor false", "flags"),
    "false_alarms_per_1000": Column("`false_alarms` per 1,000 `decisions`", "flags", UNDECIDED),
    "undrifted_flagged": Column(
        "of the clients without a drift up to the last scored round about which it decided, those that it "
        "has flagged",
        SHARE,
        "if it decided about none",
    ),
    "decisions": Column("decisions about a client in a scored round", "decisions"),
    "tp": Column(
        "true positives: flags of clients that should be flagged then, by `detection.positive`", "decisions"
    ),
    "tn": Column("true negatives: decisions without a flag about other clients", "decisions"),
    "fp": Column("false positives: flags of other clients", "decisions"),
    "fn": Column(
        "false negatives: decisions without a flag about clients that should be flagged", "decisions"
    ),
    "accuracy": Column("(`tp` + `tn`) / `decisions`", SHARE, UNDECIDED),
    "precision": Column("`tp` / (`tp` + `fp`)", SHARE, "without flags"),
    "recall": Column("`tp` / (`tp` + `fn`)", SHARE, "if no decision should have been a flag"),
    "f1": Column(
        "2 `tp` / (2 `tp` + `fp` + `fn`)", SHARE, "if no decision was a flag or should have been one"
    ),
    "clipped": Column("numbers outside the domain of the detector, in the whole run", "numbers"),
}

_DRIFTS: Mapping[str, Column] = {
    **RUN,
    "detector": DETECTOR,
    "client": Column("id of the client"),
    "client_name": CLIENT_NAME,
    "onset": Column("number of the round in which its data become others, from 0"),
    "step": Column("data step at which they do", "data steps"),
    "kind": Column("name of the kind of drift"),
    "before": Column("its concept before", missing=UNSHOWN),
    "after": Column("its concept from then on", missing=UNSHOWN),
    "asked_round": Column("round of the first decision about it, within the tolerance", "rounds", NOT_ASKED),
    "found_round": Column("round of the flag that found the drift", "rounds", MISSED),
    "delay_rounds": Column("`found_round` minus `onset`", "rounds", MISSED),
    "delay_s": Column(
        "from the opening of the round `onset` to the flag that found the drift", SECONDS, MISSED
    ),
    "asked_s": Column("from the same opening to the first decision", SECONDS, NOT_ASKED),
    "found_s": Column("`delay_s` minus `asked_s`", SECONDS, MISSED),
}

_MODEL_ACCURACY: Mapping[str, Column] = {
    **RUN,
    "round": Column("number of the round, from 0"),
    "closed_s": Column("when it closed", SECONDS),
    "cluster": Column("label of the model's cluster"),
    "concept": Column("true concept of test samples"),
    "accuracy": Column(
        "share of correct predictions of the model among all test samples of the concept that scored clients "
        "hold, whichever model serves them",
        SHARE,
    ),
}

COMPARISON: Mapping[str, Column] = {
    "directory": Column("run directories that share the row"),
    "<key>": Column(
        "value of a key in which the configurations differ, by the whole key",
        "that of the key",
        NO_KEY,
        "if they differ in none",
    ),
    "arm": Column("name of the arm"),
    "num_seeds": Column("seeds that both the arm and its reference arm have", "seeds"),
    "mean_accuracy": Column(
        "accuracy, averaged over the virtual time that all runs have in common",
        SHARE,
        "if a run was not evaluated in it",
    ),
    "gain_pp": Column("that minus the one of the first arm of the same directory", POINTS, "for that arm"),
    "difference_pp": Column(
        "that minus the one of the same arm of the first directory", POINTS, "in the first directory"
    ),
    "<figure>_low": Column("lower end of the 95 % interval", ITS_OWN, f"{NO_INTERVAL}, and as the figure"),
    "<figure>_high": Column("upper end of that interval", ITS_OWN, "as `<figure>_low`"),
    "total_bytes": Column("bytes sent, both ways, for training and control", BYTES),
}
"""The columns of `Comparison.frame`."""

CHECK: Mapping[str, Column] = {
    "name": Column("name of the configuration"),
    "arms": Column("names of its arms"),
    "seeds": Column("its seeds"),
    "clients": Column("clients of the first seed's trace", "clients"),
    "labels": Column("classes of samples", "classes"),
    "labels seen": Column("names of the classes, at most 50 of them", absent="if they have no names"),
    "samples in the trace": Column("training and test samples", "samples"),
    "last data step": Column("the last data step that brings data, from 0", "data steps"),
    "device profile": Column("name of the device profile"),
    "model factor": Column(
        "how many times slower a sample is than with the profile's reference model; of each arm, if they "
        "differ",
        "factor",
    ),
    "availability: <fact>": Column(
        "what the source of availability counted, such as devices that are never online",
        absent="if it counts nothing",
    ),
    "faults: <kind>": Column(
        "configured probability of a fault, or the number of byzantine clients of a kind",
        absent="without that fault",
    ),
    "client updates in all": Column(
        "participants x rounds x arms x seeds", "updates", absent="with `round.seconds_per_round`"
    ),
    "virtual seconds of a run": Column("`round.rounds` x `round.seconds_per_round`", "s", absent=UNTIMED),
    "fleet: speeds": Column("where the speeds of clients come from, and how they got them"),
    "fleet: hours": Column("where the hours at which clients are online come from, and how they got them"),
    "fleet: seconds of download": Column(
        "median and quantiles, 10 and 90 %, over the clients, of the download of one model, without faults "
        "and requests; of each arm, if they differ",
        "s",
    ),
    "fleet: seconds of compute": Column("the same of local training", "s"),
    "fleet: seconds of upload": Column("the same of the upload", "s"),
    "fleet: seconds of a visit": Column("the same of all phases together", "s"),
    "fleet: can finish in time": Column(
        "clients whose visits end within the duration, deadline or time-out of the pacing",
        "clients",
        absent="if no pacing has one",
    ),
    "fleet: rounds of a run": Column(
        "if every visit takes the median, and comes back", "rounds", absent=UNTIMED
    ),
    "fleet: online at the start": Column("clients that are online at virtual time 0", "clients"),
    "fleet: online from": Column(
        "when the first client and the tenth part of all have been online, beside the horizon, the end of a "
        "run whose visits take the median, and `round.max_wait_days`",
        "s",
    ),
    "warnings": Column("what it warns of, such as seeds without clients online", absent="without warnings"),
}
"""The columns of `Check.frame`, and the facts of `driftscale check --format json`."""


@cache
def frame_columns() -> dict[str, dict[str, Column]]:
    """The columns of every frame by name, in their order, without those that a folder puts before them."""
    return {
        "summary": dict(_SUMMARY),
        "table": dict(_TABLE),
        "rounds": _rounds(),
        "clients": dict(_CLIENTS),
        "visits": dict(_VISITS),
        "triggers": _triggers(),
        "detection": dict(_DETECTION),
        "drifts": dict(_DRIFTS),
        "model_accuracy": dict(_MODEL_ACCURACY),
    }


def described(frame: str, column: str) -> Column | None:
    """What is known of a column of a frame; None if nothing is.

    Args:
        frame: The name of the frame, such as "rounds".
        column: The name of the column, such as "gain_pp_low".

    >>> described("table", "gain_pp_low").unit, described("rounds", "nothing")
    ('percentage points', None)
    """
    columns = frame_columns()[frame]
    if column in columns:
        return columns[column]
    if frame in ("rounds", "triggers") and column.startswith("trigger."):
        return NAMED
    if frame == "rounds" and column.startswith("noted."):
        return NOTED
    figure, suffix = re.fullmatch(r"(.*?)(_low|_high|_over|)", column).groups()  # type: ignore[union-attr]
    if frame == "table" and figure in figures():
        of_all, of_figure = columns[f"<figure>{suffix}"], figures()[figure]
        if suffix:
            return replace(of_all, unit="" if suffix == "_over" else of_figure.unit)
        return replace(of_figure, missing="; ".join(filter(None, [of_figure.missing, of_all.missing])))
    return IN_FOLDERS.get(column)


def _rounds() -> dict[str, Column]:
    """The columns of the frame `rounds`, and of `rounds.parquet`."""
    columns = dict(RUN)
    for kind in ("int", "bool", "float"):
        columns |= {item.line_name: _of_field(item) for item in SCHEMA.columns(kind)}
    columns |= {f"trigger_{name}": _compared(name) for name in TRIGGER}
    silhouettes = next(item for item in SCHEMA.fields if item.name == "silhouettes")
    columns["silhouettes"] = _of_field(silhouettes)
    for item in SCHEMA.columns("list[int]"):
        column = _of_field(item)
        columns[f"num_{item.line_name}"] = replace(column, meaning=f"number of {column.meaning}")
    columns["num_abandoned"] = Column(
        "number of visits that were still out when their lane closed or a time limit passed", "visits"
    )
    return {**columns, "trigger.<name>": NAMED, "noted.<name>": NOTED}


def _triggers() -> dict[str, Column]:
    """The columns of the frame `triggers`."""
    rounds = _rounds()
    return {
        **{name: rounds[name] for name in ("arm", "seed", "round", "closed_s")},
        "shift": Column(
            "what was compared: a shift of centres, the largest distance of clients, or the number that a "
            "trigger named `measured`",
            DISTANCE,
            "in rounds in which nothing was compared",
        ),
        "limit": Column(
            "with what it was compared",
            DISTANCE,
            "if the trigger never fires, with a single centre, and in rounds in which nothing was compared",
        ),
        "fired": rounds["trigger_fired"],
        "threshold": rounds["trigger_threshold"],
        "mean_distance": rounds["trigger_mean_distance"],
        "clusters": rounds["trigger_clusters"],
        "reclustered": rounds["reclustered"],
        "chosen_k": Column("clusters after the round", "clusters", UNTRIED),
        "silhouettes": rounds["silhouettes"],
        "trigger.<name>": NAMED,
    }


def _of_field(item: RoundField) -> Column:
    return Column(item.logged.about, item.logged.unit, item.logged.missing)


def _compared(name: str) -> Column:
    """A field of what triggers compare, in a frame, where rounds without such a trigger have none."""
    not_compared = {
        "clusters": NOTHING_COMPARED,
        "fired": NOTHING_COMPARED,
        "largest_distance": NOT_PAIRWISE,
        "delta": NOT_PAIRWISE,
    }
    column = TRIGGER[name]
    reasons = filter(None, [not_compared.get(name, UNCOMPARED), column.missing])
    return replace(column, missing=", and ".join(reasons))
