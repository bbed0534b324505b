"""Makes targets in stages, and prints what each took.

    python3 .ci/steps.py setup "test | lint docs" docs-test

An argument is a stage of lanes that are made at once; a lane is targets that are made one after another. The
first lane prints as it goes; each target of another prints at its end, and its last line is in the table. A
target that fails ends its lane and, once its other lanes have ended, the command, with exit code 1.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time


class Step:
    """A target: its exit code, None until it has ended, its wall and CPU seconds, and its last line."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.code: int | None = None
        self.wall_s = self.cpu_s = 0.0
        self.last_line = ""

    def make(self, *, prints: bool) -> None:
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            streams = {} if prints else {"stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(["make", "--no-print-directory", self.target], **streams)
            _, status, usage = os.wait4(process.pid, 0)
            self.code = process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read()
        self.wall_s, self.cpu_s = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
        self.last_line = (text.rstrip().splitlines() or [""])[-1]
        if not prints:
            print(f"\n== make {self.target}\n{text}", end="", flush=True)


def make_lane(steps: list[Step], *, prints: bool) -> None:
    for step in steps:
        step.make(prints=prints)
        if step.code != 0:
            return


def main() -> None:
    stages = [[[Step(name) for name in lane.split()] for lane in stage.split("|")] for stage in sys.argv[1:]]
    steps = [step for stage in stages for lane in stage for step in lane]
    for stage in stages:
        lanes = [
            threading.Thread(target=make_lane, args=(lane,), kwargs={"prints": lane is stage[0]})
            for lane in stage
        ]
        for thread in lanes:
            thread.start()
        for thread in lanes:
            thread.join()
        if any(step.code for lane in stage for step in lane):
            break
    print(f"\n{'':18}{'wall s':>8}{'CPU s':>8}")
    for step in steps:
        ending = {None: "not run", 0: ""}.get(step.code, f"failed with {step.code}; ")
        print(f"{step.target:18}{step.wall_s:8.0f}{step.cpu_s:8.0f}  {ending}{step.last_line}")
    sys.exit(any(step.code != 0 for step in steps))


if __name__ == "__main__":
    main()
