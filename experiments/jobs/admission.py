"""Admission control: how many runs fit into the memory of a machine at once.

Pure: the available memory and the measured memory of runs are passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.running.plan import PlannedRun

SHARE = 0.8
"""Fraction of the memory available at the start that all runs of a machine may take together."""

MARGIN = 1.25
"""Factor from the peak memory of a run so far to the memory it is expected to need."""


def jobs_at_once(
    requested: int | None,
    unfinished: int,
    cores: int,
    threads: int,
    available_bytes: float,
    peaks_bytes: Iterable[float],
) -> int:
    """Number of worker processes: as many as requested, or as the machine has room for; at most one per run.

    Args:
        requested: The number of processes that the user wants; None for as many as cores and memory allow.
        unfinished: Number of unfinished runs.
        cores: Cores of the machine.
        threads: Threads per run.
        available_bytes: Available memory.
        peaks_bytes: Peak memory of finished runs of the same experiments; may be empty.

    Returns:
        A number from 1 to max(1, `unfinished`).
    """
    if requested is not None:
        return max(1, min(requested, unfinished))
    largest = max(peaks_bytes, default=0.0)
    by_memory = unfinished if largest <= 0 else int(SHARE * available_bytes / largest)
    return max(1, min(unfinished, cores // threads, by_memory))


@dataclass
class _AtWork:
    machine: str
    peak_bytes: float = 0.0  # so far
    evaluated: bool = False  # whether it has closed its first evaluated round


class Admission:
    """Tracks the runs at work on each machine, and decides whether another one may begin.

    The bytes that the runs of a machine need must not exceed, in all, `SHARE` of the memory available at the
    start. A run at work is taken to need `MARGIN` times its peak so far; before its first evaluated round,
    at least the largest need among the measured runs of its experiment. Once a run of its arm has finished,
    it needs instead the peak of that one, or its own if that is larger.

    A run is of unknown size if no run of its experiment has been measured. No run begins beside such a run
    until that has closed its first evaluated round. It may itself begin beside others if there is room for
    one as large as the largest of them. A run always begins where none is at work.

    Args:
        available_bytes: Available memory by machine, before any run began.
        peaks_bytes: Peak memory by (experiment, arm), from runs that finished earlier.
    """

    def __init__(
        self, available_bytes: Mapping[str, float], peaks_bytes: Mapping[tuple[str, str], float]
    ) -> None:
        self._limits = {machine: SHARE * total for machine, total in available_bytes.items()}
        self._peaks = dict(peaks_bytes)
        self._largest: dict[str, float] = {}  # largest need among measured runs, by experiment
        for (experiment, _), peak in peaks_bytes.items():
            self._largest[experiment] = max(peak, self._largest.get(experiment, 0.0))
        self._at_work: dict[PlannedRun, _AtWork] = {}

    def joins(self, machine: str, available_bytes: float) -> None:
        """Add a machine; if it is known, its memory available at the start stays what it was."""
        self._limits.setdefault(machine, SHARE * available_bytes)

    def admits(self, run: PlannedRun, machine: str) -> bool:
        """Whether `run` may begin on `machine` now; always True if nothing is at work there."""
        beside = self._beside(machine)
        if not beside:
            return True
        if any(map(self._is_unmeasured, beside)):
            return False
        needed = self._needed(run, beside) + sum(map(self._counts, beside))
        return needed <= self._limits[machine]

    def held_back(self, run: PlannedRun, machine: str) -> str | None:
        """Why `run` cannot begin on `machine` for lack of memory, as a line for the user.

        None if it may begin, or if it only waits until a run of unknown size has been measured.
        """
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
        """Take note that the peak memory of a run so far is `peak_bytes`; ignored if the run is not at work.

        `evaluated`: whether the run has closed an evaluated round.
        """
        work = self._at_work.get(run)
        if work is None:
            return
        work.peak_bytes = max(work.peak_bytes, peak_bytes)
        work.evaluated = work.evaluated or evaluated
        if work.evaluated:
            self._measured(run, MARGIN * work.peak_bytes)

    def ends(self, run: PlannedRun, peak_bytes: float | None = None) -> None:
        """Take note that a run is no longer at work; if it has finished, `peak_bytes` is its peak memory."""
        self._at_work.pop(run, None)
        if peak_bytes is not None:
            self._peaks[run.experiment, run.arm] = peak_bytes
            self._measured(run, peak_bytes)

    def _measured(self, run: PlannedRun, needs_bytes: float) -> None:
        self._largest[run.experiment] = max(needs_bytes, self._largest.get(run.experiment, 0.0))

    def _beside(self, machine: str) -> list[PlannedRun]:
        return [run for run, work in self._at_work.items() if work.machine == machine]

    def _needed(self, run: PlannedRun, beside: Sequence[PlannedRun]) -> float:
        """Bytes that must be free for `run` to begin beside others."""
        expected = self._expected(run)
        return max(map(self._counts, beside)) if expected is None else expected

    def _expected(self, run: PlannedRun) -> float | None:
        """Bytes that `run`, not begun, is expected to need; None if its experiment is not measured."""
        return self._peaks.get((run.experiment, run.arm), self._largest.get(run.experiment))

    def _counts(self, run: PlannedRun) -> float:
        """Bytes that `run`, which is at work, is taken to need."""
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
