import pytest

from coordinator.assignment import Fit
from coordinator.federation.round_progress import RoundProgress
from emulator.messages import NamedNumbers, Trigger
from emulator.storage.state_tree import as_tree, from_bytes, from_tree, to_bytes

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
    assert from_tree(RoundProgress, from_bytes(to_bytes(as_tree(progress)))) == progress
