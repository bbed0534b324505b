import numpy as np
import pytest

from coordinator.assignment import Fit
from coordinator.federation.round_progress import RoundProgress
from emulator.messages import ABANDONED, COMPLETED, DROPPED, EndedVisits, NamedNumbers, Trigger
from emulator.storage.state_tree import as_tree, from_bytes, from_tree, to_bytes
from tests.fakes import ints

SILENT, LATER, FIRED, AGAIN = (
    Trigger(shift, 2.0, 0.25, 3, fired)
    for shift, fired in ((0.1, False), (0.2, False), (0.6, True), (0.7, True))
)


@pytest.mark.parametrize(
    ("evaluated", "logged"),
    [
        ([], None),
        ([SILENT], SILENT),
        ([SILENT, LATER], LATER),
        ([SILENT, FIRED], FIRED),
        ([FIRED, SILENT], FIRED),
        ([FIRED, AGAIN, SILENT], AGAIN),
    ],
)
def test_of_several_triggers_in_a_round_that_waited_the_last_that_fired_is_logged(evaluated, logged):
    progress = RoundProgress()
    for trigger in evaluated:
        progress.log_trigger(trigger)
    assert progress.trigger == logged


@pytest.mark.parametrize("trigger", [FIRED, NamedNumbers({"spread": 0.5, "far": [1.0, 2.5]}, 2, True)])
def test_what_a_round_has_come_to_is_stored_and_put_back(trigger):
    progress = RoundProgress(reclustered=True, fitted=Fit(20, 10, {2: 0.5, 3: None}), trigger=trigger)
    progress.losses, progress.staleness, progress.largest_staleness = np.array([0.5, 0.25]), 7, 4
    content = to_bytes(as_tree(progress))
    assert to_bytes(as_tree(from_tree(RoundProgress, from_bytes(content)))) == content


def landed(*rows):
    """Rows (client, staleness, outcome) of ended visits, in one lane."""
    client, staleness, outcome = (ints(*column) for column in zip(*rows, strict=True))
    zeros = np.zeros(len(rows))
    return EndedVisits(client + 100, client, client * 0, zeros, zeros, outcome, staleness)


def test_participants_are_those_of_all_steps_and_staleness_is_that_of_the_absorbed():
    progress = RoundProgress()
    progress.landed(landed((3, 0, COMPLETED), (7, 9, ABANDONED)), crashed=ints())
    assert (progress.staleness, progress.largest_staleness) == (0, 0)
    progress.landed(landed((1, 2, COMPLETED), (3, 5, DROPPED), (4, 1, COMPLETED)), crashed=ints(3))
    assert progress.participants == [3, 7, 1, 3, 4]
    assert progress.completed == [3, 1, 4]
    assert progress.dropped == progress.crashed == [3]
    assert (progress.staleness, progress.largest_staleness) == (0 + 2 + 1, 2)


def test_of_a_round_that_absorbed_nothing_no_staleness_is_known():
    progress = RoundProgress()
    progress.landed(landed((7, 9, ABANDONED)), crashed=ints())
    assert progress.largest_staleness is None


def test_of_several_notes_of_a_round_the_last_of_each_name_counts() -> None:
    progress = RoundProgress()
    progress.note({"disparity": 1.0, "epochs": 2})
    progress.note({})
    progress.note({"disparity": np.float64(3.0)})
    assert progress.noted == {"disparity": 3.0, "epochs": 2.0}
    assert {type(number) for number in progress.noted.values()} == {float}
