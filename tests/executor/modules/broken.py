"""Modules that cannot be trained as they stand, each for another reason."""

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


class Base(nn.Module):
    def __init__(self, d=64, num_labels=4):
        super().__init__()
        self.fc = nn.Linear(d, num_labels)

    def forward(self, x):
        return self.fc(x.flatten(1))


class TooFewOutputs(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels - 1)


class OtherShape(Base):
    def __init__(self, d=65, num_labels=4):
        super().__init__(d, num_labels)


class SecondArgument(Base):
    def forward(self, x, mask):
        return super().forward(x) * mask


class MovingBuffer(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        return super().forward(x)


class UnknownDraw(Base):
    def forward(self, x):
        return super().forward(x[torch.randperm(len(x))])


class Gumbel(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.act = nn.RReLU()

    def forward(self, x):
        return super().forward(self.act(x))


class BatchDependent(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.norm = nn.BatchNorm1d(d, track_running_stats=False)

    def forward(self, x):
        return super().forward(self.norm(x.flatten(1)))


class NanAtTheStart(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        with torch.no_grad():
            self.fc.bias[0] = float("nan")


class FloatTokens(nn.Module):
    def __init__(self, num_labels=4):
        super().__init__()
        self.emb = nn.Embedding(50, 8)
        self.fc = nn.Linear(8, num_labels)

    def forward(self, ids):
        return self.fc(self.emb(ids.flatten(1)).mean(1))


class AlwaysDrops(Base):
    def forward(self, x):
        return super().forward(F.dropout(x, 0.5))


class PlainAttribute(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.scale = torch.linspace(0.5, 1.5, d)

    def forward(self, x):
        return super().forward(x.flatten(1) * self.scale)


class Momentumless(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.norm = nn.BatchNorm1d(d, momentum=None)

    def forward(self, x):
        return super().forward(self.norm(x.flatten(1)))


class Checkpointed(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.body = nn.Sequential(nn.Linear(d, d), nn.Dropout(0.5))

    def forward(self, x):
        return super().forward(
            torch.utils.checkpoint.checkpoint(self.body, x.flatten(1), use_reentrant=False)
        )


class Nothing(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.requires_grad_(False)


class Pair(Base):
    def forward(self, x):
        return super().forward(x), x


class Raises(Base):
    def forward(self, x):
        raise ValueError("no such thing")


class Squeezed(Base):
    def forward(self, x):
        return super().forward(x).squeeze()


class Infinite(Base):
    def forward(self, x):
        return super().forward(x).abs().neg().log()


class Counting(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.temperature = 1.0

    def forward(self, x):
        if self.training:
            self.temperature *= 0.99
        return super().forward(x) * self.temperature


class Listing(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.steps = []

    def forward(self, x):
        if self.training:
            self.steps.append(1)
        return super().forward(x) * 0.5 ** len(self.steps)


class Closure(nn.Module):
    def __init__(self, d=64, num_labels=4):
        super().__init__()
        self.a, self.b = nn.Linear(d, 8), nn.Linear(8, num_labels)
        self.head = lambda x: self.b(torch.relu(x))

    def forward(self, x):
        return self.head(self.a(x.flatten(1)))


class Complex(Base):
    def __init__(self, d=64, num_labels=4):
        super().__init__(d, num_labels)
        self.w = nn.Parameter(torch.ones(d, dtype=torch.cfloat))

    def forward(self, x):
        return super().forward(torch.fft.ifft(torch.fft.fft(x.flatten(1)) * self.w).real)


def not_a_module(num_labels):
    return [num_labels]
