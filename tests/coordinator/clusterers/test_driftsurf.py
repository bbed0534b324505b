import numpy as np

from coordinator.assignment import Assignment
from coordinator.clusterers.driftsurf import DriftSurf, DriftSurfSettings
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.view import ScoreResponse
from emulator.messages import SampleRanges, Scores
from tests.fakes import a_view


class Story:
    """DriftSurf over data steps, with given accuracies of the two rows of the bank over all samples.

    Client 0 holds 30 samples and client 1 holds 10, so that the mean of their accuracies would be another.
    Models are identified by their numbers, in the order in which they were made.
    """

    def __init__(self, **settings) -> None:
        self.clusterer = DriftSurf(DriftSurfSettings(**settings))
        self.memory = Claimed(ClaimedSettings(window=10))
        self.step = 0
        self.assignment = None
        self.models: list[int] = []
        self._apply(self.clusterer.on_data(self._view()))

    def _view(self, accuracies=None, changed=()):
        def score(clients, models, samples, metrics, limit=None):
            assert (clients.tolist(), models.tolist(), samples) == ([0, 1], [0, 1], "arrived")
            correct = np.round(40 * np.array(accuracies))
            rows = np.stack([np.minimum(correct, 30), np.maximum(correct - 30, 0)])
            return ScoreResponse(clients, Scores(np.array([30, 10]), correct=rows))

        return a_view(
            num_clients=2,
            assignment=self.assignment,
            model_ids=range(len(self.models)),
            step=self.step,
            changed=changed,
            score=score,
            arrived=lambda ids, first, last: SampleRanges.one_each(100 * ids + first, 100 * ids + last + 1),
        )

    def _apply(self, assignment: Assignment | None) -> None:
        if assignment is not None:
            made = max(self.models, default=-1) + 1
            fresh = range(made, made + 2)
            if self.assignment is None:
                self.models = list(fresh)
            else:
                self.memory.models_changed(assignment)
                sources = [*self.models, fresh[0]]
                self.models = [sources[row] for row in assignment.mixing.argmax(axis=1)]
            self.assignment = assignment
        self.memory.claim(self._view())

    def data(self, predictive: float, other: float):
        """One data step: the model that serves after it, both models, and the steps each trains on."""
        self.step += 1
        self._apply(self.clusterer.on_data(self._view((predictive, other), changed=[0, 1])))
        view = self._view()
        plan = self.clusterer.serve(view)
        assert (plan.models == plan.models[0]).all()
        assert (plan.weights == 1).all()
        steps = [self.memory.samples(np.array([0]), row, view).first.tolist() for row in (0, 1)]
        return self.models[plan.models[0, 0]], self.models, *steps


def test_everybody_trains_two_models_of_the_common_initialisation():
    assignment = DriftSurf(DriftSurfSettings()).on_data(a_view(num_clients=3))
    assert assignment.members.tolist() == [[0, 1]] * 3
    assert assignment.lane_of_client.tolist() == [0] * 3
    assert (assignment.mixing @ assignment.extra).tolist() == [[0, 0], [0, 0]]


def test_the_state_machine_over_eight_steps_whose_reactive_model_wins():
    story = Story(delta=0.1, reactive_steps=3)
    # Stable: model 0 is the best so far, at 0.8, and 0.7 is not yet a drift: it is no more than 0.1 below.
    assert story.data(0.8, 0.7) == (0, [0, 1], [0, 1], [0, 1])
    assert story.data(0.7, 0.75) == (0, [0, 1], [0, 1, 2], [0, 1, 2])
    # 0.675 is: the stable model 1 goes, the reactive model 2 starts from nothing, and 0 serves.
    assert story.data(0.675, 0.675) == (0, [0, 2], [0, 1, 2, 3], [3])
    # The better of the two serves, on the newest data.
    assert story.data(0.5, 0.6) == (2, [0, 2], [0, 1, 2, 3, 4], [3, 4])
    # The third reactive step is the last: by the means, 0.575 and 0.6125, 2 serves, though 0 is better now.
    assert story.data(0.65, 0.625) == (2, [0, 2], [0, 1, 2, 3, 4, 5], [3, 4, 5])
    # Stable again: 2 is the predictive model, with its data, and a new stable model starts, with none. The
    # best so far is now 0.625, which 2 had in the race: 0.55 is no drift, as it would be from 0.8.
    assert story.data(0.9, 0.55) == (2, [2, 3], [3, 4, 5, 6], [6])
    assert story.data(0.55, 0.575) == (2, [2, 3], [3, 4, 5, 6, 7], [6, 7])
    # 0.525 is no more than 0.1 below the best, but more than 0.05 below the stable model.
    assert story.data(0.525, 0.6) == (2, [2, 4], [3, 4, 5, 6, 7, 8], [8])


def test_a_reactive_model_that_loses_is_dropped():
    story = Story(delta=0.1, reactive_steps=3)
    story.data(0.8, 0.8)
    assert story.data(0.6, 0.8) == (0, [0, 2], [0, 1, 2], [2])
    assert story.data(0.775, 0.75) == (0, [0, 2], [0, 1, 2, 3], [2, 3])
    # The last step. The means are equal, 0.7625: 0 stays. But 2 is better now, and serves this once.
    assert story.data(0.75, 0.775) == (2, [0, 2], [0, 1, 2, 3, 4], [2, 3, 4])
    # The best so far is still 0.8, so that 0.675 is a drift at once: one new model, which now is reactive.
    assert story.data(0.675, 0.9) == (0, [0, 3], [0, 1, 2, 3, 4, 5], [5])
    assert story.data(0.6, 0.7) == (3, [0, 3], [0, 1, 2, 3, 4, 5, 6], [5, 6])


def test_the_best_accuracy_rises_in_the_reactive_state_too():
    story = Story(delta=0.1, reactive_steps=2)
    story.data(0.5, 0.5)
    story.data(0.3, 0.3)
    # Two reactive steps, so that a single race decides: the predictive model wins it at 0.9.
    assert story.data(0.9, 0.6)[0] == 0
    # 0.7 is a drift from 0.9: model 3 replaces model 2 as the reactive one.
    assert story.data(0.7, 0.0)[:2] == (0, [0, 3])
    assert story.data(0.2, 0.4)[:2] == (3, [0, 3])


def test_old_claims_leave_the_window():
    story = Story()
    for _ in range(11):
        served = story.data(0.8, 0.8)
    assert served == (0, [0, 1], list(range(2, 12)), list(range(2, 12)))


def test_clients_that_bring_their_data_late_in_a_step_change_nothing():
    story = Story()
    story.data(0.8, 0.8)
    assert story.clusterer.on_data(story._view((0.1, 0.8), changed=[1])) is None
    assert story.clusterer.serve(story._view()).models.tolist() == [[0], [0]]
    assert story.data(0.8, 0.8)[:2] == (0, [0, 1])


def test_a_step_on_which_nobody_has_samples_is_passed_over():
    story = Story()
    story.data(0.8, 0.8)
    story.step += 1

    def score(clients, models, samples, metrics, limit=None):
        return ScoreResponse(clients, Scores(np.zeros(2, dtype=np.int64), correct=np.zeros((2, 2))))

    view = a_view(
        num_clients=2, assignment=story.assignment, model_ids=[0, 1], step=2, changed=[0], score=score
    )
    assert story.clusterer.on_data(view) is None
    assert story.data(0.8, 0.8)[:2] == (0, [0, 1])
