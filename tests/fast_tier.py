"""The fast tier (`make test-fast`): all tests but those that start processes, write reports, or take long.

Those are marked `slow`, or are in a file of `NOT_COLLECTED`, most of whose tests are slow, and which is not
imported. In the tier a test fails if it starts a process, writes a report or takes a second of CPU time, and
the tier fails if it has too few tests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

LEAST_TESTS = 6000
MOST_CPU_S = 1.0

NOT_COLLECTED = (
    "tests/reliability",
    "tests/contracts/test_numbers.py",
    "tests/coordinator/detectors/test_against_river.py",
    "tests/coordinator/test_late_imports.py",
    "tests/coordinator/test_visit_counts.py",
    "tests/device_profiles/test_fedscale_round_durations.py",
    "tests/docs/test_playing.py",
    "tests/driftscale/test_calls.py",
    "tests/driftscale/test_public_names.py",
    "tests/executor/test_malloc.py",
    "tests/executor/test_ranges.py",
    "tests/executor/training/test_strategies.py",
    "tests/benchmarks/test_clustering.py",
    "tests/benchmarks/test_digits.py",
    "tests/experiments/cli/test_added_tables.py",
    "tests/experiments/cli/test_bad_input.py",
    "tests/experiments/cli/test_cluster.py",
    "tests/experiments/cli/test_commands.py",
    "tests/experiments/cli/test_compare.py",
    "tests/experiments/cli/test_degenerate.py",
    "tests/experiments/cli/test_folder_commands.py",
    "tests/experiments/cli/test_own_parts.py",
    "tests/experiments/cli/test_streams.py",
    "tests/experiments/cli/test_sweep_commands.py",
    "tests/experiments/cli/test_view.py",
    "tests/experiments/cli/traces/test_build.py",
    "tests/experiments/cli/traces/test_from_data_to_a_report.py",
    "tests/experiments/cluster/test_connection.py",
    "tests/experiments/cluster/test_serve.py",
    "tests/experiments/results/many_runs/test_folder_table.py",
    "tests/experiments/results/pages/test_hostile_names.py",
    "tests/experiments/results/pages/test_report_in_browser.py",
    "tests/experiments/results/pages/test_report_page.py",
    "tests/experiments/running/test_command_facts.py",
    "tests/experiments/running/test_folder.py",
    "tests/experiments/running/test_locking.py",
    "tests/experiments/running/test_manifest.py",
    "tests/experiments/running/test_plan.py",
    "tests/experiments/running/test_replicas.py",
    "tests/experiments/running/test_runner.py",
    "tests/experiments/running/test_sharing.py",
    "tests/experiments/running/test_visits.py",
    "tests/experiments/tracking/test_live.py",
    "tests/golden/test_changes.py",
    "tests/golden/test_drifting_methods.py",
    "tests/golden/test_second_fielding.py",
    "tests/ratchets/test_calls_of_a_round.py",
    "tests/ratchets/test_modules_of_a_typo.py",
    "tests/ratchets/test_report_bytes.py",
    "tests/test_plugin_package.py",
    "tests/test_words.py",
    "tests/traces/building/table/test_build.py",
    "tests/traces/building/test_writing.py",
    "tests/traces/changes/test_against_brute_force.py",
    "tests/traces/tables/test_even_and_sorted.py",
)


class FastTier:
    """The plug-in of `--fast`: leaves out what is not of the tier, and fails what does not belong into it."""

    def __init__(self, root: Path) -> None:
        self._not_collected = {root / name for name in NOT_COLLECTED}
        self._done: list[str] | None = None  # what the present test has done that it may not; None: no test
        sys.addaudithook(self._hear)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path in self._not_collected else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        is_whole = session.config.args == session.config.getini("testpaths")
        if is_whole and len(session.items) < LEAST_TESTS:
            raise pytest.UsageError(
                f"the fast tier has {len(session.items)} tests, not {LEAST_TESTS} or more"
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._done = []
        try:
            return (yield)
        finally:
            self._done = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """A test that has passed fails if it, or a fixture that was made for it, does not belong here."""
        before_s = time.process_time()
        result = yield
        done = list(self._done or ())
        if (cpu_s := time.process_time() - before_s) > MOST_CPU_S:
            done.append(f"takes {cpu_s:.1f} s of CPU time")
        if done:
            pytest.fail(f"it {done[0]}: mark it slow (tests/fast_tier.py)", pytrace=False)
        return result

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._done is None:
            return
        if event in ("subprocess.Popen", "tests.forked", "os.fork", "os.posix_spawn", "os.system"):
            self._done.append(f"starts a process ({event})")
        elif event == "open" and str(arguments[0]).endswith("report.html"):
            self._done.append("writes or reads a report")
