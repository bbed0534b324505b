"""Notes beside the tables of a summary: how arms were compared, and the limits of the comparison.

A note on one table alone is in the module of that table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.results.drawing.arms import Arm
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import FEWEST_SEEDS
from experiments.results.statistics.marked_seeds import marked_clause
from experiments.results.statistics.scales import as_time
from experiments.results.statistics.summary import Summary
from experiments.results.wording import in_its_words

SERVED = " Tables and figures that do not say personal are of the models that serve clients."
MOVES = (
    "A target that is the reference arm's own accuracy moves with the horizon: do not compare experiments "
    "by it."
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
COME_AND_GO = (
    "Clients come and go: between {} and {} of {} hold training samples at a time, and take part; between {} "
    "and {} of them hold test samples too, and are scored. Accuracies are means over those, so they also "
    "change with who is scored, alike in all arms at the same data step. Changes of clusters are those of "
    "clients that hold training samples before and after a data step."
)


def as_warning(text: str) -> str:
    return f"Warning: {text}."


@in_its_words
def horizon_note(summary: Summary) -> str:
    """A note on the time over which arms are compared: its end, what set it, and the data steps reached."""
    horizon = summary.horizon
    served = SERVED if summary.comparison.has_personal else ""
    arrive = "round" if horizon.seconds_per_round is None else "virtual time"
    set_by = horizon.ended_first() or "report.horizon_s"
    steps = ", ".join(f"{arm} {reached:g}" for arm, reached in horizon.steps.items())
    if len(set(horizon.steps.values())) == 1 and len(horizon.steps) > 1:
        steps = f"{next(iter(horizon.steps.values())):g} in every arm"
    return (
        f"Compared up to {as_time(horizon.horizon_s)} of virtual time ({set_by}), mean accuracy from "
        f"{as_time(horizon.start_s)} on, where every run has been evaluated. Data arrive by {arrive}; steps "
        f"reached by the horizon: {steps}.{_seeds(summary)}{served}"
    )


def _seeds(summary: Summary) -> str:
    """A note on the number of seeds of each arm; empty if all have the same number."""
    seeds = {arm.arm: len(arm.runs) for arm in summary.rows}
    if len(set(seeds.values())) < 2:
        return ""
    counts = ", ".join(f"{arm} {count}" for arm, count in seeds.items())
    return f" Seeds: {counts}; gains, time saved and speed-ups are over the seeds that both arms have."


def few_seeds_note(arms: Sequence[Comparison], *, has_dots: bool = True) -> str:
    """A warning if some arm has too few seeds for an interval; empty if none has.

    `has_dots` is whether values of single seeds are shown in the place of intervals.
    """
    counts = [len(arm.seed_ids) for arm in arms]
    if min(counts, default=FEWEST_SEEDS) >= FEWEST_SEEDS:
        return ""
    return FEW_SEEDS.format(DOTS if has_dots and 2 in counts else "")


def heard_mark(arms: Sequence[str], where: str = "") -> str:
    """A sentence that names the arms in which offline clients are heard; empty if there are none."""
    return f"Offline clients heard: {where}{', '.join(arms)}." if arms else ""


def heard_note(arms: Sequence[str], where: str = "") -> str:
    """The same with what it means."""
    return f"{heard_mark(arms, where)} {OFFLINE_CLIENTS_HEARD}" if arms else ""


def short_notes(summary: Summary) -> list[str]:
    """The notes that no table of the summary should be read without, each in a sentence.

    Where no arm is compared, they are those on marked seeds alone.
    """
    marked = marked_clause([seed.as_json() for seed in summary.marked_seeds])
    warnings = summary.warnings() if summary.rows else [marked]
    others = [heard_mark(summary.offline_clients_heard), few_seeds_note(summary.rows, has_dots=False)]
    return [*map(as_warning, filter(None, warnings)), *filter(None, others)]


def headline_notes(summary: Summary) -> list[str]:
    """The notes on the sentences and figures of a page, those that are not warnings."""
    virtual = "Times are virtual: those of the emulated clients, not those of the computation."
    stated = [horizon_note(summary), few_seeds_note(summary.rows), virtual]
    return [" ".join(filter(None, stated)), come_and_go_note(summary) or ""]


@in_its_words
def come_and_go_note(summary: Summary) -> str | None:
    """A note on how many clients hold data at a time; None if always all of them do."""
    runs = [run for arm in summary.rows for run in arm.runs]
    records = [record for run in runs for record in run.records]
    clients = max(map(num_clients, runs), default=0)
    holding = [clients if record.holding is None else record.holding for record in records]
    if min(holding, default=clients) >= clients:
        return None
    scored = [record.scored_clients for record in records if record.scored_clients is not None]
    numbers = (min(holding), max(holding), clients, min(scored, default=0), max(scored, default=0))
    return COME_AND_GO.format(*(f"{number:,}" for number in numbers))


def at_their_own_levels(intervals: Iterable[object | None]) -> str:
    """A sentence with the number of comparisons that have an interval; empty for a single one."""
    count = sum(interval is not None for interval in intervals)
    return f"{count} comparisons, each interval at its own level. " if count > 1 else ""


def intervals_of_single_arms(arms: Sequence[Arm]) -> str:
    """A sentence on the intervals in a table that compares no arms; empty for a single seed."""
    most = max(len(arm.runs) for arm in arms)
    if most == 1:
        return ""
    if most < FEWEST_SEEDS:
        return "Means over seeds; dots are single seeds. "
    return (
        "Means and 95 % intervals over seeds (Student's t), each by itself. They are not intervals of "
        "differences: arms share their seeds, so two arms may differ although their intervals overlap. "
        f"{dots_of_triggers(arms)}"
    )


def any_trigger(arms: Sequence[Arm | Comparison]) -> bool:
    """Whether some arm has a trigger that may fire or not, and with it no t interval."""
    return any(arm.has_trigger for arm in arms)


def dots_of_triggers(arms: Sequence[Arm | Comparison]) -> str:
    """A sentence on the dots that such arms have; empty without one."""
    return "Dots are single seeds, of arms whose trigger may fire or not. " if any_trigger(arms) else ""
