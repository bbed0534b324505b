"""Notes beside the tables of a summary: how arms were compared, and the limits of the comparison."""

from __future__ import annotations

from experiments.results.reading.recorded import REFERENCE
from experiments.results.statistics.intervals import FEWEST_SEEDS
from experiments.results.tables.clients import chance_of_worse
from experiments.results.tables.formats import percent_scale, show_estimate, time_scale
from experiments.results.tables.summary import Summary

MEAN_ACCURACY = (
    "Mean accuracy is averaged over virtual time, each evaluation holding until the next; it equals the "
    "share of that time at or above a target, averaged over all targets from 0 to 100 %."
)
AFTER_DRIFT = " Gain after drift is over the time from the first mass event of each run."
ADJUSTED_RAND_INDEX = (
    "The adjusted Rand index compares clusters with the true concepts: 1 if they are the same, as one "
    "cluster is with one concept, and 0 on average if they agree by chance. It is the mean over evaluations "
    "from the first data step at which not all clients are of the first concept."
)
HOW_TO_SET_A_TARGET = (
    "No target accuracy is set. report.targets = [0.5] in the configuration, or --set 'report.targets=[0.5]' "
    "with the same run command, adds a table of times to that accuracy without running anything again."
)
MOVES = (
    "A target that is the reference arm's own accuracy moves with the horizon: do not compare experiments "
    "by it."
)
BELOW_AFTER_DRIFT = (
    "Below after drift is the share of the time from the first mass event of each run to the horizon that is "
    "below the target. "
)
BOUNDS = (
    "A run that does not hold a target has a time after the horizon; a run that holds it from its first "
    "evaluation has a time before that evaluation. Where the median is not known for this reason, >= marks "
    "its lower bound, <= its upper bound, a-b both, and undetermined means that it has neither. An interval "
    "from 0 to infinity is left out. "
)
OFFLINE_CLIENTS_HEARD = (
    'With round.hear = "everyone" clients report although they are offline: their bytes are charged, and '
    "no round waits for them."
)
FEW_SEEDS = "With under three seeds there is no interval, and what is shown may be due to chance{}."
DOTS = "; dots are the values of single seeds"
COST_NOTE = (
    "Costs are per run, up to the horizon; virtual time and wall time are those of whole runs. Download and "
    "upload are of training; control is reports and client requests with the models that they need, both "
    "ways. Clusters are those that exist at the horizon, also empty ones. Wall time is longer if other runs "
    "share the machine, as with --jobs."
)


CLUSTER_CHANGES = (
    "A re-clustering by itself costs no byte and no virtual second in this emulator: this table shows what "
    "fewer of them buy. Clients that change cluster: the share of all clients whose cluster at the end of a "
    "data step is another one than before the step, averaged over the data steps after the first; through a "
    "re-clustering, clusters are matched by the largest overlap. Accuracy lost is the accuracy at the last "
    "evaluation before a data step minus that at the first one in it or after it, averaged over data steps; "
    "the largest loss is the largest of them in a run. Models replaced counts clients whose model was "
    "replaced by an assignment: each client that moved, and all clients at every global re-clustering, since "
    "models are mixed and each client needs a new one. Clustering is wall time of the coordinator over whole "
    "runs."
)


COME_AND_GO = (
    "Clients come and go: between {} and {} of {} hold training samples at a time, and take part; between {} "
    "and {} of them hold test samples too, and are scored. Accuracies are means over those, so they also "
    "change with who is scored, alike in all arms at the same data step. Changes of clusters are those of "
    "clients that hold training samples before and after a data step."
)


HONEST_APART = (
    "Honest clients and byzantine clients: the mean accuracy over virtual time, as that of all clients, of "
    "the scored clients that are honest, or byzantine. All arms of a seed have the same byzantine clients, "
    "and the labels that they are tested on are never flipped."
)


CLIENTS_AT_HORIZON = (
    "Accuracies of the scored clients at the last evaluation by the horizon, not smoothed. The worst tenth "
    "is the mean of the tenth of clients (rounded up) with the lowest accuracy: each arm has its own, so its "
    "gain does not say that the same clients gain."
)
BY_CHANCE = (
    "Worse off is a strictly lower accuracy; who has the same is neither worse nor better off. A client has "
    "few test samples, so some are worse off by chance: between two arms that are equally good for everyone, "
    "as many clients are better off as worse off, on average."
)


GLOBAL_RECLUSTERINGS = (
    "Global re-clusterings are those up to the horizon: rounds in which all clients were clustered anew."
)
CLIENT_DISTANCE = (
    "Client distance is the mean distance of a client's data from those of the other members of its cluster "
    "(round.client_distance), averaged over clients and over evaluations up to the horizon."
)


def as_warning(text: str) -> str:
    return f"Warning: {text}."


def horizon_note(summary: Summary) -> str:
    """A note on the time over which arms are compared: its end, what set it, and the data steps reached."""
    horizon = summary.horizon
    set_by = horizon.ended_first() or "report.horizon_s"
    steps = ", ".join(f"{arm} {reached:g}" for arm, reached in horizon.steps.items())
    if len(set(horizon.steps.values())) == 1 and len(horizon.steps) > 1:
        steps = f"{next(iter(horizon.steps.values())):g} in every arm"
    return (
        f"Compared up to {_time(horizon.horizon_s)} of virtual time ({set_by}), mean accuracy from "
        f"{_time(horizon.start_s)} on, where every run has been evaluated. Data arrive by round; steps "
        f"reached by the horizon: {steps}.{_seeds(summary)}"
    )


def _seeds(summary: Summary) -> str:
    """A note on the number of seeds of each arm; empty if all have the same number."""
    seeds = {arm.arm: len(arm.runs) for arm in summary.compared}
    if len(set(seeds.values())) < 2:
        return ""
    counts = ", ".join(f"{arm} {count}" for arm, count in seeds.items())
    return f" Seeds: {counts}; gains, time saved and speed-ups are over the seeds that both arms have."


def accuracy_note(summary: Summary) -> str:
    """A note that explains the table of accuracies."""
    gains = [gain for row in summary.accuracy for gain in (row.gain_pp, row.gain_after_drift_pp) if gain]
    intervals = [row.mean_accuracy.ci95 for row in summary.accuracy]
    agreements = [value is not None for row in summary.accuracy for value in row.adjusted_rand_index.per_seed]
    statistic = "Mean and 95 % interval over seeds (Student's t)" if any(intervals) else "Mean over seeds"
    return (
        f"{statistic}; gains over {summary.reference_arm} are paired by seed. "
        f"{_comparisons(sum(gain.ci95 is not None for gain in gains))}{MEAN_ACCURACY}"
        f"{AFTER_DRIFT if any(row.gain_after_drift_pp for row in summary.accuracy) else ''}"
        f"{' ' + ADJUSTED_RAND_INDEX if any(agreements) else ''}"
    )


def cluster_change_note(summary: Summary) -> str:
    """A note that explains the table of changes of clusters."""
    difference = f" Difference is accuracy lost minus that of {summary.reference_arm}, paired by seed."
    return f"{CLUSTER_CHANGES}{difference if len(summary.cluster_changes) > 1 else ''}"


def honest_note(summary: Summary) -> str:
    """A note that explains the table of honest and byzantine clients."""
    gain = f" Gain of honest clients is over those of {summary.reference_arm}, paired by seed."
    return f"{HONEST_APART}{gain if len(summary.honest) > 1 else ''}"


def client_note(summary: Summary) -> str:
    """A note that explains the table of clients, with a yardstick of what is chance."""
    if len(summary.clients) < 2:
        return CLIENTS_AT_HORIZON
    reference = next(arm for arm in summary.compared if arm.is_reference)
    chance = chance_of_worse(reference, summary.horizon)
    gains = [row.worst_tenth_gain_pp for row in summary.clients]
    intervals = _comparisons(sum(gain is not None and gain.ci95 is not None for gain in gains))
    compared = (
        f" Each client is compared with itself under {reference.arm}, seed by seed. {BY_CHANCE}"
        f"{f' Gains of the worst tenth are paired by seed: {intervals}'.rstrip() if intervals else ''}"
    )
    if chance.mean is None:
        return CLIENTS_AT_HORIZON + compared
    cell = show_estimate(chance, percent_scale(chance.mean))
    return (
        f"{CLIENTS_AT_HORIZON}{compared} Between the last two evaluations by the horizon of {reference.arm} "
        f"itself, {' '.join(cell.lines)} of its clients lost accuracy."
    )


def target_note(summary: Summary) -> str:
    """A note that explains the tables of targets."""
    rows = [row for table in summary.targets for row in table.rows]
    levels = {f"{100 * row.time_below_s.level:.1f} %" for row in rows if row.time_below_s.level is not None}
    level = f", with an interval of order statistics at {' or '.join(sorted(levels))}" if levels else ""
    smoothed = "accuracy" if summary.window == 1 else f"the mean of the last {summary.window} evaluations"
    moves = MOVES if any(table.target == REFERENCE for table in summary.targets) else ""
    compared = [figure for row in rows for figure in (row.saved_s, row.speedup) if figure is not None]
    intervals = [figure.interval for figure in compared]
    return (
        f"Median over seeds{level}; saved and speed-up are medians of the differences and ratios of single "
        f"seeds. Time below counts every evaluation, and the time before the first one. "
        f"{BELOW_AFTER_DRIFT if any(row.below_after_drift for row in rows) else ''}"
        f"Held from is the first evaluation from which {smoothed} stays at or above the target up to the "
        f"horizon; held is the number of seeds in which it does. "
        f"{BOUNDS}{_comparisons(sum(item is not None for item in intervals))}{moves}"
    ).strip()


def few_seeds_note(summary: Summary) -> str | None:
    """A warning if some arm has too few seeds for an interval; otherwise None."""
    counts = [len(arm.runs) for arm in summary.compared]
    if min(counts) >= FEWEST_SEEDS:
        return None
    return FEW_SEEDS.format(DOTS if 2 in counts else "")


def heard_note(summary: Summary) -> str | None:
    """A note that marks the arms in which offline clients are heard; None if there are none."""
    arms = ", ".join(summary.offline_clients_heard)
    return f"Offline clients heard: {arms}. {OFFLINE_CLIENTS_HEARD}" if arms else None


def come_and_go_note(summary: Summary) -> str | None:
    """A note on how many clients hold data at a time; None if always all of them do."""
    runs = [run for arm in summary.compared for run in arm.runs]
    clients = max(
        (len(run.records[0].members) for run in runs if run.records[0].members is not None), default=0
    )
    holding = [
        clients if record.holding is None else record.holding for run in runs for record in run.records
    ]
    if min(holding, default=clients) >= clients:
        return None
    scored = [
        record.scored_clients for run in runs for record in run.records if record.scored_clients is not None
    ]
    numbers = (min(holding), max(holding), clients, min(scored, default=0), max(scored, default=0))
    return COME_AND_GO.format(*(f"{number:,}" for number in numbers))


def _comparisons(count: int) -> str:
    return f"{count} comparisons, each interval at its own level. " if count > 1 else ""


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
