import numpy as np

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.hearing.client_data import ClientData, Reference
from emulator.ports import unmeasured
from emulator.seeding import RandomStreams
from tests.fakes import FakeExecutor, FakeStream, ints


def data_of(executor, bank=None, reference=None, **stream):
    stream = FakeStream(np.full((1, 2, 2), 0.5), **stream)
    stream.advance_to_round(0)
    return ClientData(
        stream=stream,
        bank=bank or ModelBank(executor.num_parameters),
        executor=executor,
        reference=reference,
        streams=RandomStreams(0),
        meter=unmeasured,
    )


def test_the_global_model_is_the_mean_of_the_present_models_whatever_their_members():
    executor, bank = FakeExecutor([0.0, 0.0]), ModelBank(1)
    models = np.array([[1.0], [5.0]], dtype=np.float32)
    bank.apply(Assignment.fresh(ints(0, 0), 2, models))
    gradients = data_of(executor, bank).gradients(ints(0, 1), "global")
    assert executor.measured[0][0].tolist() == [3.0]
    assert gradients.tolist() == [[3.0], [3.0]]


def test_before_there_are_models_the_global_one_is_the_initial_model():
    executor = FakeExecutor([1.0, 0.0])
    assert data_of(executor).gradients(ints(0, 1), "global").tolist() == [[-1.0], [0.0]]


def test_the_frozen_model_is_that_of_the_reference_and_so_are_its_size_and_cost():
    executor, frozen = FakeExecutor([0.0, 0.0]), FakeExecutor([0.0, 0.0], num_parameters=2)
    parameters = np.array([7.0, 9.0], dtype=np.float32)
    data = data_of(executor, reference=Reference(frozen, parameters, ints(3, 3), 2.5))
    assert data.gradients(ints(1), "frozen").tolist() == [[7.0, 9.0]]
    assert data.embeddings(ints(1)).tolist() == [[1.0, 7.0]]
    assert (data.num_parameters("frozen"), data.num_parameters("global")) == (2, 1)
    assert (data.cost("frozen"), data.cost("global")) == (2.5, 1.0)
    assert executor.measured == []


def test_samples_are_those_that_clients_train_on_now():
    data = data_of(FakeExecutor([0.0, 0.0]), train=[3, 4], test=[9, 9])
    assert data.num_samples(ints(0, 1)).tolist() == [3, 4]
