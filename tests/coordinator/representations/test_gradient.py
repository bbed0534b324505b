from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.representations import gradient
from coordinator.representations.gradient import Gradient, GradientSettings
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from tests.fakes import ints


def of_eight_numbers(**columns):
    """Clients whose gradient is their id, eight times."""
    return SimpleNamespace(
        streams=RandomStreams(0),
        num_parameters=lambda at: 8,
        gradients=lambda clients, at: np.repeat(clients[:, None], 8, axis=1).astype(np.float32),
        num_samples=lambda clients: clients + 1,
        cost=lambda at: 3.0 if at == "frozen" else 1.0,
        **columns,
    )


def test_a_report_is_the_whole_gradient():
    reports = Gradient(GradientSettings()).measure(ints(2, 5), of_eight_numbers())
    assert reports.tolist() == [[2.0] * 8, [5.0] * 8]


def test_a_sketched_report_has_as_many_numbers_as_the_sketch():
    sketched = Gradient(GradientSettings(sketch=3))
    data = of_eight_numbers()
    assert sketched.size(data) == 3
    one, two = sketched.measure(ints(1, 2), data)
    assert (two == 2 * one).all()
    assert np.abs(one).sum() <= 8


def test_gradients_are_measured_in_blocks_that_fit_into_memory(monkeypatch):
    monkeypatch.setattr(gradient, "AT_ONCE", 16)  # two clients
    asked = []
    data = of_eight_numbers()
    whole = data.gradients
    data.gradients = lambda clients, at: asked.append(clients.tolist()) or whole(clients, at)
    reports = Gradient(GradientSettings()).measure(ints(1, 2, 3), data)
    assert asked == [[1, 2], [3]]
    assert reports[:, 0].tolist() == [1, 2, 3]


def test_a_report_at_the_frozen_model_costs_a_training_pass_of_that_model():
    work = Gradient(GradientSettings()).work(ints(1, 4), of_eight_numbers())
    assert work.trained_samples.tolist() == [2 * 3.0, 5 * 3.0]
    assert (work.download_bytes == 0).all()
    assert (work.forward_samples == 0).all()


def test_a_report_at_the_global_model_costs_its_download_too():
    work = Gradient(GradientSettings(at="global")).work(ints(1, 4), of_eight_numbers())
    assert work.trained_samples.tolist() == [2.0, 5.0]
    assert work.download_bytes.tolist() == [32.0, 32.0]


def test_a_sketch_longer_than_a_gradient_is_refused():
    with pytest.raises(ConfigurationError, match="sketch = 9: must not be above the 8 numbers of a gradient"):
        Gradient(GradientSettings(sketch=9)).size(of_eight_numbers())


def test_the_global_model_has_no_settings_of_a_reference_model():
    with pytest.raises(ValidationError, match='epochs is a setting of the reference model, which at = "glo'):
        GradientSettings(at="global", epochs=3)
