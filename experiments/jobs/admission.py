"""How many runs the memory of a machine holds at once.

Pure: what is available, and what runs have been seen to hold, is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.running.plan import PlannedRun


SHARE = 0.8
"""Of the memory that was available at the start."""

MARGIN = 1.25
"""What a run is expected to need, in what it has held at most so far."""


def jobs_at_once(
    requested: int | None,
    unfinished: int,
    cores: int,
    threads: int,
    available_bytes: float,
    peaks_bytes: Iterable[float],
) -> int:
    """How many worker processes there should be: as many as `asked`, or (None) as the machine has room for,
    and no more than there are runs.

    Args:
        asked: A number, or None for the machine's own.
        unfinished: Runs that are left.
        cores: Of the machine.
        threads: That each run takes.
        available_bytes: Of memory.
        peaks_bytes: What runs of the same kind held at most, if that is known.
    """
    if requested is not None:
        return max(1, min(requested, unfinished))
    largest = max(peaks_bytes, default=0.0)
    by_memory = unfinished if largest <= 0 else int(SHARE * available_bytes / largest)
    return max(1, min(unfinished, cores // threads, by_memory))


@dataclass
class _AtWork:
    machine: str
    peak_bytes: float = 0.0  # held so far, at most
    evaluated: bool = False  # whether it has closed its first evaluated round


class Admission:
    """Follows the runs at work on each machine, and says whether another one may begin.

    A run counts with `MARGIN` times the most it has held so far, or, once a run of its arm is finished, with
    what that one held at most. All together may count for `SHARE` of what was available. Beside a run of
    which nothing is known none begins until it has closed its first evaluated round; beside others it may
    begin itself, if there is room for as much as the largest of them needs.

    Args:
        available_bytes: Of each machine, before any run began.
        peaks_bytes: Of (experiment, arm), from runs that were finished earlier.
    """

    def __init__(
        self, available_bytes: Mapping[str, float], peaks_bytes: Mapping[tuple[str, str], float]
    ) -> None:
        self._limits = {machine: SHARE * total for machine, total in available_bytes.items()}
        self._peaks = dict(peaks_bytes)
        self._largest: dict[str, float] = {}  # of an experiment's runs that were measured
        for (experiment, _), peak in peaks_bytes.items():
            self._largest[experiment] = max(peak, self._largest.get(experiment, 0.0))
        self._at_work: dict[PlannedRun, _AtWork] = {}

    def joins(self, machine: str, available_bytes: float) -> None:
        """Another machine; one that is known keeps what it had."""
        self._limits.setdefault(machine, SHARE * available_bytes)

    def admits(self, run: PlannedRun, machine: str) -> bool:
        """Whether `run` may begin on `machine` now. With nothing at work there it always may."""
        beside = self._beside(machine)
        if not beside:
            return True
        if any(map(self._is_unmeasured, beside)):
            return False
        needed = self._needed(run, beside) + sum(map(self._counts, beside))
        return needed <= self._limits[machine]

    def held_back(self, run: PlannedRun, machine: str) -> str | None:
        """Why `run` has to wait for memory; None when it need not, or waits for a first measurement."""
        beside = self._beside(machine)
        if any(map(self._is_unmeasured, beside)) or self.admits(run, machine):
            return None
        number = f"{len(beside)} run{'s' if len(beside) > 1 else ''}"
        return (
            f"{machine}: memory for {number} at a time (the next needs about "
            f"{_gib(self._needed(run, beside))}, and {_gib(self._limits[machine])}, {SHARE:.0%} of what was "
            f"available, may be taken)"
        )

    def begins(self, run: PlannedRun, machine: str) -> None:
        self._at_work[run] = _AtWork(machine)

    def saw(self, run: PlannedRun, peak_bytes: float, *, evaluated: bool) -> None:
        """The run has held `peak_bytes` at most so far."""
        work = self._at_work.get(run)
        if work is None:
            return
        work.peak_bytes = max(work.peak_bytes, peak_bytes)
        work.evaluated = work.evaluated or evaluated
        if work.evaluated:
            self._measured(run, MARGIN * work.peak_bytes)

    def ends(self, run: PlannedRun, peak_bytes: float | None = None) -> None:
        """The run is not at work any more; `peak_bytes` if it is finished."""
        self._at_work.pop(run, None)
        if peak_bytes is not None:
            self._peaks[run.experiment, run.arm] = peak_bytes
            self._measured(run, peak_bytes)

    def _measured(self, run: PlannedRun, needs_bytes: float) -> None:
        self._largest[run.experiment] = max(needs_bytes, self._largest.get(run.experiment, 0.0))

    def _beside(self, machine: str) -> list[PlannedRun]:
        return [run for run, work in self._at_work.items() if work.machine == machine]

    def _needed(self, run: PlannedRun, beside: Sequence[PlannedRun]) -> float:
        """Bytes to be free for `run`, which has not begun, beside others."""
        expected = self._expected(run)
        return max(map(self._counts, beside)) if expected is None else expected

    def _expected(self, run: PlannedRun) -> float | None:
        """Bytes that a run which has not begun will need; None if nothing is known of its experiment."""
        return self._peaks.get((run.experiment, run.arm), self._largest.get(run.experiment))

    def _counts(self, run: PlannedRun) -> float:
        """Bytes that a run at work counts with."""
        work = self._at_work[run]
        known = self._peaks.get((run.experiment, run.arm))
        if known is not None:
            return max(known, work.peak_bytes)
        if work.evaluated:
            return MARGIN * work.peak_bytes
        return max(MARGIN * work.peak_bytes, self._largest.get(run.experiment, 0.0))

    def _is_unmeasured(self, run: PlannedRun) -> bool:
        return not self._at_work[run].evaluated and self._expected(run) is None


def _gib(amount_bytes: float) -> str:
    return f"{amount_bytes / 2**30:.1f} GiB"
