"""The first step of an optimiser of torch imports its compiler, a second that belongs to no test."""

import torch

_weight = torch.zeros(1, requires_grad=True)
_weight.grad = torch.zeros(1)
torch.optim.SGD([_weight], lr=0.1).step()
