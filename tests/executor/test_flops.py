from __future__ import annotations

from executor.flops import forward_flops
from tests.executor.fakes import model


def test_a_linear_model_costs_two_operations_per_weight() -> None:
    assert forward_flops(model("linear"), (28, 28), 10) == 2 * 784 * 10
    assert forward_flops(model("mlp", hidden=[128]), (64,), 10) == 2 * (64 * 128 + 128 * 10)


def test_a_convolution_costs_two_operations_per_weight_and_output_pixel() -> None:
    by_hand = 2 * (9 * 16 * 26**2 + 144 * 32 * 11**2 + 800 * 10)
    assert forward_flops(model("cnn"), (28, 28), 10) == by_hand
