"""Plays the blocks of README and docs from the wheel, page by page (`make docs-test`).

    python tests/docs/play_blocks.py
    python tests/docs/play_blocks.py --page docs/tutorial.md --keep

plays, with the commands of the wheel, the blocks of each page in their order in an empty folder, pages
beside one another. Output that a page shows is compared. A block that fails is printed with its page, line,
command and output, and ends its page; the exit code is then 1. At the end is what was run, what was
shortened, where --jobs was left out, and what was not run, with the reasons.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.docs.blocks import Page, documented_files, read_page
from tests.docs.foreign_options import unknown_options
from tests.docs.playing import RUN_WITH_JOBS, Environment, Played, play
from tests.wheel import install, installed_wheel

PIP = """#!/bin/sh
# Installs into this environment, from what is here already.
command=$1
shift
[ "$command" = install ] && set -- --no-index --no-build-isolation "$@"
exec {python} -m pip --python {environment}/bin/python "$command" "$@"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="append", help="play this page alone (repeatable)", metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="keep the folders, and say where they are")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="docs-test-"))
    try:
        pages = [read_page(name) for name in arguments.page or documented_files()]
        is_good = play_all(pages, folder)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if arguments.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if is_good else 1)


def play_all(pages: Sequence[Page], folder: Path) -> bool:
    """Play the pages in folders below `folder`; whether nothing has failed."""
    start = time.perf_counter()
    problems = [problem for page in pages for problem in (*page.problems, *unknown_options(page))]
    print(*problems, sep="\n", end="\n" if problems else "")
    wheel, shared = installed_wheel()
    with_workers = next((page for page in pages if any(map(RUN_WITH_JOBS.search, page.lines_run))), None)
    print(f"{wheel.name} is installed after {time.perf_counter() - start:.0f} s", flush=True)

    def environment(page: Page, place: Path) -> Environment:
        if not page.installs:
            return Environment(shared, place / "home", forks=True, workers=page is with_workers)
        commands = install(wheel, place / "fresh")
        pip = commands / "pip"
        pip.write_text(PIP.format(python=sys.executable, environment=commands.parent), encoding="utf-8")
        pip.chmod(0o755)
        return Environment(commands, place / "home")

    def play_one(page: Page) -> Played:
        place = folder / page.name.replace("/", "-").removesuffix(".md")
        place.mkdir()
        return play(page, environment(page, place), place)

    results = in_parallel(play_one, [page for page in pages if not page.problems])
    print_summary(results, time.perf_counter() - start)
    return not problems and not any(played.failure for played in results)


def in_parallel(play_one: Callable[[Page], Played], pages: Sequence[Page]) -> list[Played]:
    """What became of each page, in the order of the pages; each is printed when it is done.

    Pages with many commands begin first, so that no long one is left over for the end.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        longest_first = sorted(pages, key=lambda page: -page.num_commands)
        futures: dict[str, Future[Played]] = {
            page.name: pool.submit(play_one, page) for page in longest_first
        }
        pending = set(futures.values())
        try:
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    print_page(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            Environment.stop_all()
            raise
    return [futures[page.name].result() for page in pages]


def print_page(played: Played) -> None:
    if played.failure:
        print(f"\n{played.failure}\n", flush=True)
    elif played.num_run:
        print(f"{played.page}: ok, {played.num_run} blocks, {played.seconds:.0f} s", flush=True)


def print_summary(results: Sequence[Played], seconds: float) -> None:
    """Print the blocks of each page, and which were not run."""
    rows = [("page", "run", "shortened", "not run", "seconds")]
    rows += [
        (
            played.page,
            f"{played.num_run}{' (fails)' if played.failure else ''}",
            str(played.num_shortened),
            str(len(played.not_run)),
            f"{played.seconds:.1f}",
        )
        for played in results
        if played.num_run or played.not_run or played.failure
    ]
    total = [sum(counts) for counts in zip(*(played.counts for played in results), strict=True)]
    rows.append(("all", *map(str, total), f"{seconds:.0f} together"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print()
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print(row[0].ljust(widths[0]), *cells, sep="  ")
    without_jobs = [
        f"{played.page}: {played.num_without_jobs}" for played in results if played.num_without_jobs
    ]
    if without_jobs:
        print(
            "\nCommands played without their --jobs; the first of all is played with it:",
            *without_jobs,
            sep="\n",
        )
    not_run = [line for played in results for line in played.not_run]
    if not_run:
        print("\nNot run; options, keys and names in them are checked all the same:", *not_run, sep="\n")


if __name__ == "__main__":
    main()
