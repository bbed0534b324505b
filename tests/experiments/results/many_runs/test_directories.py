from pathlib import Path
from typing import Any

from experiments.results.many_runs import directories
from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.reading.json_files import Manifest
from tests.experiments.synthetic_runs import a_directory, a_run


def test_what_is_kept_of_a_log_is_the_same_where_python_leaves_assertions_out():
    source = Path(directories.__file__)
    module: dict[str, Any] = {"__name__": directories.__name__}
    exec(compile(source.read_text(), source, "exec", optimize=1), module)

    run = module["reduced"](a_run("global", 0, [0.5, 0.5]), None, 1)

    assert run.log.offline_clients_heard is False


def test_the_arm_of_the_headline_is_found_once_however_many_rows_ask(tmp_path):
    """A page asks of each row for that of each directory."""
    seen = []

    class Arms(list[dict[str, str]]):
        def __iter__(self):
            seen.append("read")
            return super().__iter__()

    directory = a_directory(tmp_path, ["global", "moves"], [0])
    experiment = {**directory.experiment(), "arm": Arms(directory.experiment()["arm"])}
    item = MeasuredDirectory("runs", directory, experiment, Manifest(), [])

    assert [item.headline, item.headline] == [None, None]
    assert seen == ["read"]
