import pytest

from experiments.results.figures.rounds import outcomes_figure
from tests.experiments.results.drawn import a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_record, a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def test_outcomes_are_means_per_round():
    run = a_run("global", 0, [0.5, 0.5])
    run.records[1] = a_record(1, completed=[0], dropped=[])
    bars = traces(outcomes_figure(drawn_arms(a_summary([run]))).validated(), "bar")
    assert {bar.name: list(bar.x) for bar in bars} == {
        "completed": [2.0],
        "abandoned": [1.5],
        "dropped out": [0.5],
    }
