import math

import pytest

from experiments.results.figures.waiting import waiting_figure
from experiments.results.statistics.closers import Closer
from experiments.results.statistics.waiting import BETWEEN, COMPONENTS, waiting
from experiments.results.tables.closers import closers_table
from experiments.results.tables.round_lengths import ArmWaiting, lengths_sentence, lengths_table
from tests.experiments.synthetic_runs import a_record

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def a_round(number, *, opened_s=0.0, closed_s=7.0):
    return a_record(number, opened_s=opened_s, dispatched_s=1.0, closed_s=closed_s)


def waited_of(arm, **seconds):
    named = {name.replace("_", " "): value for name, value in seconds.items()}
    return ArmWaiting(arm, 10.0, {**dict.fromkeys((*COMPONENTS, BETWEEN), 0.0), **named})


def test_the_waiting_of_an_arm_is_a_mean_over_its_seeds():
    runs = [waiting([a_round(0)], None), waiting([a_round(0), a_round(1, closed_s=9.0)], None)]
    arm = ArmWaiting.of_runs("global", runs)
    assert (arm.rounds, arm.seconds["visits"], arm.seconds["before dispatch"]) == (1.5, 10.0, 1.5)
    assert arm.length_s == 11.5 / 1.5


def test_bars_add_up_to_the_mean_length_of_a_round_or_to_all_of_them():
    arms = [waited_of("global", compute=90.0, upload=10.0), waited_of("fielding", compute=20.0)]
    figure = waiting_figure(arms).validated()
    assert [trace.name for trace in figure.data] == ["compute", "upload"]
    assert [list(trace.x) for trace in figure.data] == [[9, 2], [1, 0]]
    per_round, summed = figure.layout.updatemenus[0].buttons
    assert per_round.args[0]["x"] == [[9, 2], [1, 0]]
    assert summed.args[0]["x"] == [[90, 20], [10, 0]]


def test_the_sentence_says_how_much_longer_the_rounds_of_an_arm_are():
    sentence = lengths_sentence([waited_of("global", compute=100.0), waited_of("fielding", upload=50.0)])
    assert sentence.startswith(
        "Mean length of a round: global 10.0 s (compute 100 %); fielding 5.00 s (upload 100 %). "
        "Rounds of global are 2 times as long as the shortest"
    )


def test_of_arms_with_equal_rounds_both_sentences_name_the_same_one():
    arms = [waited_of(f"arm-{number}", compute=100.0 + 50 * (number > 2)) for number in range(6)]
    sentence = lengths_sentence(arms)
    assert "arm-3 15.0 s" in sentence
    assert "Rounds of arm-3 are 1.5 times" in sentence


def test_the_sentence_on_many_arms_names_only_the_shortest_and_the_longest_rounds():
    arms = [waited_of(f"arm-{number:02d}", compute=100.0 + number) for number in range(22)]
    sentence = lengths_sentence(arms)
    assert "arm-00" in sentence
    assert "arm-21" in sentence
    assert "arm-10" not in sentence
    assert sentence.startswith("Shortest and longest mean round of 22 arms")


def test_tables_have_shares_of_rounds_and_the_clients_that_closed_them():
    table = lengths_table([waited_of("global", compute=90.0, upload=10.0)])
    assert table.headings == ["rounds", "mean length", "compute", "upload"]
    assert [cell.figure for cell in table.rows[0][1]] == ["10", "10.0 s", "90.0 %", "10.0 %"]
    closer = Closer(0, 7, 3, 2, 0.25, 20.0, [4.0, math.nan, math.nan])
    table = closers_table([("global", closer)], {})
    assert [cell.figure for cell in table.rows[0][1]] == [
        *("0", "7", "3", "2", "25.0 %", "10.0 s", "4.00x", "n/a", "n/a")
    ]
