"""Synthetic(alpha, beta): the generated data of FedProx, whose clients differ in labels and in features.

Draws its numbers in the order of the published generator, from numpy's legacy generator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field, model_validator

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number
from traces.arrivals import SPLITS, arrivals_of
from traces.changes.settings import ChangingSettings
from traces.draw import MAX_SAMPLES_IN_MEMORY
from traces.images import ImageSet
from traces.onsets import NO_ONSETS
from traces.sources.base import DataSeed, TraceContext, TraceSource
from traces.tables.sorted import SortedTable
from traces.trace import Trace

if TYPE_CHECKING:
    from traces.holders import Holders

NUM_FEATURES = 60
NUM_LABELS = 10
LEAST_SAMPLES = 50
"""Samples that every client has at least."""

TRAIN_SHARE = 0.9

MOST_SAMPLES = MAX_SAMPLES_IN_MEMORY // 8
"""Most samples of a trace: with its 60 features one takes some 350 bytes."""

Deviation = Annotated[float, Number(ge=0, le=1000)]


class SyntheticSettings(ChangingSettings):
    """The number of clients, and how much they differ."""

    clients: Count = Field(30, description="how many clients there are")
    alpha: Deviation = Field(
        0.5,
        description="how much labels differ among clients: standard deviation of the means of their weights",
        examples=[1],
    )
    beta: Deviation = Field(
        0.5,
        description="how much features differ among clients: standard deviation of the means of their "
        "features' means",
        examples=[1],
    )
    iid: bool = Field(
        False,
        description="one rule of labels and one distribution of features for all clients, in place of alpha "
        "and beta (FedProx's Synthetic IID)",
    )
    samples: Annotated[int, Number(ge=1, le=MOST_SAMPLES // 2)] | None = Field(
        None,
        description="training samples of each client, which has as many for tests; without it, numbers "
        "differ, and a tenth is for tests, as published",
        examples=[40],
    )
    rounds_per_step: Count = Field(
        10, description="rounds of a data step; nothing arrives after the first one"
    )
    data_seed: DataSeed = 0

    @model_validator(mode="after")
    def _has_one_distribution(self) -> SyntheticSettings:
        fields = type(self).model_fields
        differs = [key for key in ("alpha", "beta") if getattr(self, key) != fields[key].default]
        if self.iid and differs:
            raise ValueError(f"iid = true: clients do not differ; leave out {' and '.join(differs)}")
        return self


class Synthetic(TraceSource):
    """Synthetic(alpha, beta) of FedProx: clients with a linear labelling of their own; needs no file.

    Client c has n = int(exp(N(4, 2))) + 50 samples of 60 features, which it keeps to the end: nothing arrives
    or expires. Its samples are x ~ N(v, diag(j^-1.2)), j = 1 to 60, with v_j ~ N(B, 1); their labels
    argmax(softmax(W^T x + b)), with W (60, 10) and b (10) of N(u, 1). Clients differ in u ~ N(0, alpha) and
    B ~ N(0, beta): even with alpha = beta = 0 each has a W, b and v of its own. N(m, s) has the standard
    deviation s, except for x, whose variances are given: the published generator does so, and the paper does
    not say whether alpha and beta are variances. With `iid`, v is 0, and W and b are one of N(0, 1) for all.

    Of clients with a change `rule`, labels come from features by another W and b of N(0, 1), drawn for the
    change, and the same for all of them. Earlier changes of their labels must have ended.

    The numbers are those of the published generator with `numpy.random.seed(data_seed)` before it, which as
    published sets no seed. We differ in three points. Of a client's samples, int(0.9 n) are for training and
    the others for tests, as published, but in an order from a stream of `data_seed`, not from Python's
    generator without a seed. Features are rounded to single precision after they are labelled. A label is the
    largest of W^T x + b, also where the softmax would overflow (beyond 709).

    Source: Li et al. 2020 (FedProx), section 5.1, and their generator, data/synthetic_1_1 of its repository.

    >>> from emulator.seeding import RandomStreams
    >>> trace = Synthetic(SyntheticSettings(clients=3)).build(TraceContext(1, RandomStreams(0), str))
    >>> trace.sample_shape, trace.num_labels
    ((60,), 10)
    >>> [trace.held(np.arange(3), split, step=0).counts().tolist() for split in SPLITS]
    [[1718, 153, 392], [191, 18, 44]]
    """

    Settings = SyntheticSettings
    settings: SyntheticSettings

    def build(self, context: TraceContext) -> Trace:
        settings = self.settings
        streams = context.data_streams(self.settings.data_seed)
        generator = np.random.RandomState(streams.seed)
        sizes = self._sizes(generator)
        features, labels = _draw(sizes, settings, generator)
        ends = np.cumsum(sizes)
        split = np.concatenate(
            [
                _split(
                    int(size), settings.samples or int(TRAIN_SHARE * size), streams.generator("split", client)
                )
                for client, size in enumerate(sizes)
            ]
        )
        image = np.arange(ends[-1])
        pool = ImageSet(
            features,
            scale=1.0,
            labels=labels,
            num_labels=NUM_LABELS,
            train=np.flatnonzero(split == SPLITS.index("train")),
            test=np.flatnonzero(split == SPLITS.index("test")),
        )
        arrivals = arrivals_of(
            client=np.repeat(np.arange(len(sizes)), sizes),
            split=split,
            arrival=np.zeros_like(image),
            label=labels,
            image=image,
            noise_start=np.zeros_like(image),  # which nothing reads, without noise
        )
        trace = Trace(
            pool,
            SortedTable(arrivals, len(sizes), context.scratch),
            retain_steps=-(-context.rounds // settings.rounds_per_step),
            rounds_per_step=settings.rounds_per_step,
            noise=0.0,
            generator=streams.generator("noise"),
            test_then_train=False,
            moves=NO_ONSETS,
        )

        def rule(drawing: np.random.Generator) -> Ints:
            drawn = _rule(0.0, drawing)
            return np.concatenate([_labelled(part, *drawn) for part in np.split(features, ends[:-1])])

        return self.changed(trace, context, own=streams, rule=rule)

    def certain_holders(self, trace: Trace, context: TraceContext) -> Holders | None:
        if self.settings.changes:
            return None
        # With any seed every client holds samples of both splits to the end, or there are too many of them.
        self._sizes(np.random.RandomState(context.data_streams(self.settings.data_seed).seed))
        return trace

    def _sizes(self, generator: np.random.RandomState) -> Ints:
        """(clients,) the samples of each client; ConfigurationError if there are too many in all."""
        clients = self.settings.clients
        samples = self.settings.samples
        each = LEAST_SAMPLES if samples is None else 2 * samples
        if clients * each > MOST_SAMPLES:
            remedy = "lower clients" if samples is None else "lower clients or samples"
            raise ConfigurationError(
                f"trace.clients = {clients}: with {each} samples each, or more, they have more than "
                f"the {MOST_SAMPLES} of a synthetic trace; {remedy}"
            )
        if samples is not None:
            return np.full(clients, each)
        sizes: Ints = generator.lognormal(4, 2, clients).astype(np.int64) + LEAST_SAMPLES
        if sizes.sum() > MOST_SAMPLES:
            raise ConfigurationError(
                f"trace.clients = {clients}: with this seed they have {sizes.sum()} samples, more than the "
                f"{MOST_SAMPLES} of a synthetic trace; lower clients"
            )
        return sizes


def _draw(
    sizes: Ints, settings: SyntheticSettings, generator: np.random.RandomState
) -> tuple[np.ndarray, Ints]:
    """(samples, 60) the features and (samples,) the labels of all clients, client by client.

    `sizes` (clients,) were the first numbers of `generator`, if they were drawn. It draws in the order of the
    published generators: every number depends on those before.
    """
    clients = len(sizes)
    if settings.iid:
        centres: Floats = np.zeros((clients, NUM_FEATURES))
        common = _rule(0.0, generator)
    else:
        weight_means = generator.normal(0, settings.alpha, clients)
        feature_means = generator.normal(0, settings.beta, clients)
        # NOTE: `normal` draws one row after the other, as a loop over clients does.
        centres = generator.normal(feature_means[:, None], 1, (clients, NUM_FEATURES))
    deviations = np.sqrt(np.arange(1, NUM_FEATURES + 1) ** -1.2)
    ends = np.cumsum(sizes)
    features = np.empty((ends[-1], NUM_FEATURES), dtype=np.float32)
    labels = np.empty(ends[-1], dtype=np.int64)
    for client, (first, last) in enumerate(zip(ends - sizes, ends, strict=True)):
        weights, biases = common if settings.iid else _rule(weight_means[client], generator)
        # NOTE: the numbers of `multivariate_normal` with this diagonal covariance, without its decomposition.
        samples = generator.standard_normal((last - first, NUM_FEATURES)) * deviations + centres[client]
        labels[first:last] = _labelled(samples, weights, biases)
        features[first:last] = samples
    return features, labels


def _labelled(samples: np.ndarray, weights: Floats, biases: Floats) -> Ints:
    """(n,) the label of each of n samples (n, 60)."""
    labels: Ints = np.argmax(samples.astype(np.float64) @ weights + biases, axis=1)
    return labels


def _rule(mean: float, generator: np.random.RandomState | np.random.Generator) -> tuple[Floats, Floats]:
    """Weights (60, 10) and biases (10,) of a labelling."""
    weights = generator.normal(mean, 1, (NUM_FEATURES, NUM_LABELS))
    return weights, generator.normal(mean, 1, NUM_LABELS)


def _split(size: int, train: int, generator: np.random.Generator) -> Ints:
    """(size,) the split of each of a client's samples, an index into SPLITS; `train` are for training."""
    split = np.full(size, SPLITS.index("test"))
    split[generator.permutation(size)[:train]] = SPLITS.index("train")
    return split
