"""The tests that really start Python, how often, and what only a real start shows.

Other tests fork (`forked.py`): a start that imports torch costs two seconds. A test fails if its file has
started Python more often than is said here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

IMPORTS = "what a start imports"
PROBE = "a bench measures processes of its own"
NANNY = "dask's own processes, as users have them"
FORKED_FROM = "forks with another value of a variable that is read at the start are of another process"

REAL_STARTS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "tests/contracts/test_models_and_rules.py": {
        "test_contracts_without_models_and_rules_need_no_torch": (1, IMPORTS),
    },
    "tests/coordinator/test_late_imports.py": {
        "test_no_part_imports_scipy_at_its_first_use_in_a_run_and_one_model_none_at_all": (1, IMPORTS),
    },
    "tests/device_profiles/test_catalogue.py": {
        "test_the_package_imports_nothing_heavy": (1, IMPORTS),
    },
    "tests/driftscale/test_calls.py": {
        "test_two_jobs_run_from_a_script_without_a_main_guard": (
            1,
            "--jobs; workers import the script that started them",
        ),
    },
    "tests/driftscale/test_public_names.py": {
        "test_a_clone_called_driftscale_does_not_shadow_the_package": (1, IMPORTS),
        "test_a_folder_that_shadows_one_of_ours_is_named_in_one_line": (3, IMPORTS),
        "test_a_foreign_package_that_was_imported_before_is_named_too": (1, IMPORTS),
        "test_a_module_of_that_name_is_named_with_its_folder": (1, IMPORTS),
        "test_the_import_waits_for_no_heavy_library": (1, IMPORTS),
    },
    "tests/executor/test_executor.py": {
        "test_importing_the_package_loads_no_torch": (1, IMPORTS),
    },
    "tests/executor/test_flops.py": {
        "test_counting_does_not_import_torchs_compiler": (1, IMPORTS),
    },
    "tests/executor/test_gloo.py": {
        "test_processes_exchange_by_gloo": (2, "multiprocessing starts the ranks"),
    },
    "tests/executor/test_malloc.py": {
        "test_freed_memory_is_used_again_without_a_page_fault": (
            4,
            "the allocator reads its variables at the start",
        ),
    },
    "tests/benchmarks/building/test_table.py": {
        "test_builds_are_measured_against_writing_and_reading": (2, PROBE),
    },
    "tests/benchmarks/test_jobs.py": {
        "test_a_command_that_fails_ends_the_bench_with_its_last_line": (1, PROBE),
    },
    "tests/benchmarks/test_memory.py": {
        "test_a_process_of_its_own_prints_the_bytes_it_added": (1, PROBE),
        "test_a_process_that_fails_ends_the_bench_with_its_last_line": (1, PROBE),
    },
    "tests/benchmarks/files/test_trace_folder.py": {
        "test_opening_is_measured_against_sorting": (1, PROBE),
    },
    "tests/benchmarks/test_training.py": {
        "test_ranks_have_a_figure_beside_that_of_one_process": (1, PROBE),
    },
    "tests/benchmarks/test_typo.py": {
        "test_reporting_a_misspelt_key_takes_some_cpu_time": (1, PROBE),
    },
    "tests/experiments/cli/test_profiles.py": {
        "test_the_commands_import_nothing_heavy_before_they_run": (1, IMPORTS),
    },
    "tests/experiments/cli/test_signals.py": {
        "test_a_signal_while_libraries_are_imported_ends_with_a_line_and_130": (4, "signals between imports"),
    },
    "tests/experiments/cli/test_streams.py": {
        "test_a_command_whose_reader_is_gone_reports_it_and_ends_with_141": (
            1,
            "exit code 141: a closed pipe",
        ),
        "test_no_log_gets_the_descriptor_of_a_closed_standard_stream": (
            1,
            "standard streams that are closed at the start",
        ),
        "test_output_to_a_full_device_ends_with_3": (1, "exit code 3: a full device"),
    },
    "tests/experiments/cluster/test_connection.py": {
        "test_a_killed_worker_fails_its_task_and_is_replaced": (1, NANNY),
        "test_nothing_listens_but_scheduler_workers_and_nannies_on_loopback": (2, NANNY),
    },
    "tests/experiments/cluster/test_pool.py": {
        "test_a_job_for_a_worker_that_has_just_left_has_ended": (1, NANNY),
    },
    "tests/experiments/cluster/test_scratch.py": {
        "test_the_folder_of_a_killed_command_is_deleted_and_that_of_one_at_work_is_not": (
            1,
            "multiprocessing starts the other command",
        ),
    },
    "tests/experiments/cluster/test_serve.py": {
        "test_without_keys_nothing_listens_beyond_loopback": (
            2,
            "cluster scheduler and cluster worker as a shell starts them",
        ),
    },
    "tests/experiments/running/test_runner.py": {
        "test_a_killed_process_leaves_finished_runs_whole_and_the_same_command_completes": (1, "SIGKILL"),
        "test_ctrl_c_ends_with_130_and_the_summary_of_what_is_finished": (1, "SIGINT, exit code 130"),
    },
    "tests/ratchets/test_modules_of_a_typo.py": {
        "test_a_misspelt_key_is_answered_with_at_most_so_many_modules": (1, IMPORTS),
    },
    "tests/reliability/test_failing_calls.py": {
        "test_a_call_that_fails_ends_a_command_in_one_line_and_the_same_command_then_succeeds": (
            1,
            f"LD_PRELOAD: {FORKED_FROM}",
        ),
    },
    "tests/reliability/test_fuzz.py": {
        "test_the_long_run_counts_what_it_does_and_saves_nothing_where_it_finds_nothing": (
            1,
            "a script that users start",
        ),
    },
    "tests/reliability/test_jobs.py": {
        "test_runs_one_after_another_open_no_socket_and_import_no_dask": (
            1,
            "a launcher forbids sockets; imports",
        ),
        "test_two_hosts_come_to_the_bytes_of_one_process": (1, "--cluster"),
    },
    "tests/reliability/test_memory.py": {
        "test_a_process_with_too_little_memory_for_a_cohort_does_as_it_is_told": (
            1,
            "a limit of memory is one of everything that is imported",
        ),
    },
    "tests/reliability/test_replicas.py": {
        "test_logs_are_the_same_by_ranks_that_are_processes": (1, f"OMP_NUM_THREADS: {FORKED_FROM}"),
        "test_torchrun_starts_a_job_that_lost_a_rank_again_and_the_run_is_resumed": (1, "torchrun"),
    },
    "tests/reliability/test_signals.py": {
        "test_a_signal_stores_the_run_and_the_same_command_resumes_it": (1, "SIGTERM"),
    },
    "tests/test_imports.py": {
        "test_a_command_that_does_not_train_imports_no_heavy_library": (1, IMPORTS),
        "test_a_configuration_is_read_without_the_analysis_libraries": (1, IMPORTS),
        "test_a_mistake_in_a_configuration_is_reported_before_the_engine_is_imported": (1, IMPORTS),
        "test_a_package_of_the_same_name_that_comes_first_ends_in_one_clear_line": (
            3,
            "imports; exit code 2 as a shell sees it",
        ),
        "test_a_run_on_the_digits_does_not_import_scikit_learn": (1, IMPORTS),
        "test_a_trace_is_inspected_without_torch": (1, IMPORTS),
    },
}
"""By file and test, of those that are not sweeps: how often it starts Python, and why it has to.

Every exit code, signal, kind of stop and option of processes keeps one.
"""

NOT_COUNTED = re.compile(r"tests/processes/server\.py \d+$| multiprocessing\.resource_tracker ")
"""What the first test of a process starts that needs it, whichever that is, as a part of its command line."""


class Starts:
    """Counts the starts of Python by this process, by file of tests.

    Not by test: whichever test of a file is the first makes what all of them share.
    """

    def __init__(self) -> None:
        self.by_file: Counter[str] = Counter()
        self._file = ""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Meanwhile each start of Python by `subprocess` or `multiprocessing` is counted."""
        import _posixsubprocess
        import subprocess

        start: Callable[..., int] = _posixsubprocess.fork_exec

        def counting(arguments: Any, executables: Any, *others: Any) -> int:
            words = [os.fsdecode(argument) for argument in arguments]
            starts_python = any(Path(word).name.startswith("python") for word in words)
            if starts_python and not NOT_COUNTED.search(" ".join(words)):
                self.by_file[self._file] += 1
            return start(arguments, executables, *others)

        with (
            patch.object(_posixsubprocess, "fork_exec", counting),
            patch.object(subprocess, "_fork_exec", counting, create=True),
        ):
            yield

    def begin(self, test: str) -> None:
        """From now on the starts are those of the file of `test`, a node id."""
        self._file = test.partition("::")[0]

    def excess(self) -> str:
        """What is wrong if the present file has started Python more often than the list says; else empty."""
        number = self.by_file[self._file]
        most = sum(allowed for allowed, _ in REAL_STARTS.get(self._file, {}).values())
        if number <= most:
            return ""
        return (
            f"its file has started Python {number} times, and tests/processes/real_starts.py allows {most}: "
            "fork it (tests/processes/forked.py), or say there what only a real start shows"
        )
