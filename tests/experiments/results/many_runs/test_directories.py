from experiments.results.many_runs.directories import MeasuredDirectory
from experiments.results.reading.json_files import Manifest
from tests.experiments.synthetic_runs import a_directory


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
