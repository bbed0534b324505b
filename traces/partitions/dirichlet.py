"""Dirichlet partitions: random label mixes of clients, or random shares of clients in each class."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number
from emulator.plugins import Settings
from traces.partitions.base import Partition, Samples, dealt, shuffled_by_label
from traces.partitions.sizes import equal_sizes, refuse_unreachable_minimum

TRIES = 100
"""How often the shares of classes are drawn, before `min_samples` is called out of reach."""

MAX_CELLS = 2**26
"""Most clients times classes: arrays of that many numbers take 0.5 GB each."""

MIN_SAMPLES = 10
"""The default of `min_samples`, as in NIID-Bench."""


class DirichletSettings(Settings):
    """How unequal the label mixes of clients are, and what is drawn."""

    alpha: Annotated[float, Number(ge=1e-6, le=1e9)] = Field(
        0.5,
        description="concentration: small ones give clients of few labels, large ones clients alike",
        examples=[0.1],
    )
    per: Literal["client", "class"] = Field(
        "client",
        description="client: each client draws a label mix, and all have equally many samples; class: each "
        "class is divided among the clients, whose sizes differ",
    )
    min_samples: Count | None = Field(
        None,
        description=f"with per = 'class' only: samples that every client has at least ({MIN_SAMPLES}, if "
        f"omitted); shares are drawn again until it has",
    )

    @model_validator(mode="after")
    def _minimum_fits_the_kind(self) -> DirichletSettings:
        if self.min_samples is not None and self.per == "client":
            raise ValueError(
                f"min_samples = {self.min_samples}: with per = 'client' all clients have equally many "
                f"samples; leave it out, or set per = 'class'"
            )
        return self


class Dirichlet(Partition):
    """Dirichlet label mixes, drawn per client (equal sizes) or per class (unequal sizes).

    `per = "client"` follows Hsu et al. 2019 (arXiv:1909.06335): a client's mix is drawn from Dir(alpha p),
    where p are the class shares of all data, and it has as many samples of each class as its mix says,
    rounded at random, no sample twice; once a class is exhausted, mixes are renormalised over the classes
    that are left. Sizes differ by at most one. Unlike there, all clients draw at the same time, in a few
    turns: requests beyond what a class has are granted in one random order of the clients, and the others are
    drawn again in the next turn. As there, the last clients take what is left.

    `per = "class"` follows NIID-Bench (Li et al. 2022, after Yurochkin et al. 2019): the shares of the
    clients in each class are drawn from Dir(alpha), independently. All shares are drawn again until every
    client has `min_samples`, as in their code, but at most 100 times. Unlike in their code, a client with
    more than its equal part of the data may still get more.

    The same alpha means two things: the concentrations of a client's mix sum to alpha, whereas those of a
    class's shares are alpha each.

    Source: Hsu et al. 2019 (arXiv:1909.06335) per client; Yurochkin et al. 2019 and Li et al. 2022 per class.

    With a small alpha clients have one label; with a large one their mixes are those of all data:

    >>> samples = Samples(np.repeat([0, 1], [30, 60]))
    >>> def labels_of_clients(**settings):
    ...     partition = Dirichlet(DirichletSettings(**settings))
    ...     clients = partition.divide(samples, 3, np.random.default_rng(1))
    ...     return [np.bincount(samples.labels[clients == id_], minlength=2).tolist() for id_ in range(3)]
    >>> labels_of_clients(alpha=1e-6)
    [[30, 0], [0, 30], [0, 30]]
    >>> labels_of_clients(alpha=1e9, per="class")
    [[10, 20], [10, 20], [10, 20]]
    """

    Settings: ClassVar[type[Settings]] = DirichletSettings
    settings: DirichletSettings

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        sizes = np.bincount(samples.labels)
        sizes = sizes[sizes > 0]  # (classes,)
        if len(sizes) * num_clients > MAX_CELLS:
            raise ConfigurationError(
                f"partition: a Dirichlet partition of {len(sizes)} classes among {num_clients} clients is "
                f"larger than the {MAX_CELLS} (class, client) pairs that are supported; lower clients"
            )
        draw = self._per_client if self.settings.per == "client" else self._per_class
        counts = draw(sizes, num_clients, generator)  # (classes, clients)
        owners = np.tile(np.arange(num_clients), len(sizes))
        return dealt(shuffled_by_label(samples.labels, generator), owners, counts.ravel())

    def _per_client(self, sizes: Ints, num_clients: int, generator: np.random.Generator) -> Ints:
        """(classes, clients) the samples of each class that each client has; `sizes` (classes,)."""
        concentrations = np.tile(self.settings.alpha * sizes / sizes.sum(), (num_clients, 1))
        mixes = _log_gamma(concentrations, generator)  # (clients, classes), not normalised
        wanted, left = equal_sizes(int(sizes.sum()), num_clients), sizes.copy()
        counts = np.zeros((len(sizes), num_clients), dtype=np.int64)
        # As a turn that does not grant all requests exhausts a class, there are at most as many as classes.
        while wanted.any():
            clients, classes = np.flatnonzero(wanted), np.flatnonzero(left)
            cells = np.ix_(clients, classes)
            requests = _whole_requests(wanted[clients], _normalised(mixes[cells]), generator).T
            until = np.minimum(np.cumsum(requests, axis=1), left[classes, None])
            granted = np.diff(until, axis=1, prepend=0)  # (classes, clients) to the first that ask for them
            counts[np.ix_(classes, clients)] += granted
            wanted[clients] -= granted.sum(axis=0)
            left[classes] -= granted.sum(axis=1)
        return counts[:, generator.permutation(num_clients)]

    def _per_class(self, sizes: Ints, num_clients: int, generator: np.random.Generator) -> Ints:
        """(classes, clients) the samples of each class that each client has; `sizes` (classes,)."""
        settings = self.settings
        least = MIN_SAMPLES if settings.min_samples is None else settings.min_samples
        refuse_unreachable_minimum(least, num_clients, int(sizes.sum()))
        concentrations = np.full((len(sizes), num_clients), settings.alpha)
        best = 0
        for _ in range(TRIES):
            shares = _normalised(_log_gamma(concentrations, generator))
            borders = np.rint(np.cumsum(shares, axis=1) * sizes[:, None]).astype(np.int64)
            borders[:, -1] = sizes
            counts: Ints = np.diff(borders, axis=1, prepend=0)
            smallest = int(counts.sum(axis=0).min())
            if smallest >= least:
                return counts
            best = max(best, smallest)
        raise ConfigurationError(
            f"partition.min_samples = {least}: in {TRIES} draws with alpha = {settings.alpha:g} the smallest "
            f"of {num_clients} clients had {best} of {sizes.sum()} samples at most; lower min_samples or "
            f"clients, raise alpha, or set per = 'client'"
        )


def _whole_requests(wanted: Ints, mixes: Floats, generator: np.random.Generator) -> Ints:
    """(clients, classes) whole numbers next to `wanted` (clients,) times `mixes`, and equal in expectation.

    Rows sum to `wanted`. It is systematic rounding: cumulative sums of a row are rounded at one random point.
    """
    borders = np.cumsum(mixes, axis=1) * wanted[:, None]
    borders[:, -1] = wanted
    whole = np.floor(borders + generator.random((len(wanted), 1))).astype(np.int64)
    requests: Ints = np.diff(whole, axis=1, prepend=0)
    return requests


def _log_gamma(shape: Floats, generator: np.random.Generator) -> Floats:
    """Logarithms of gamma-distributed numbers with these shape parameters, above 0.

    For a below 1, G(a) has the distribution of G(a + 1) U^(1/a), U uniform (Marsaglia and Tsang 2000): in
    logarithms nothing underflows, however small a is.
    """
    uniform = 1.0 - generator.random(shape.shape)  # in (0, 1]
    drawn: Floats = np.log(generator.standard_gamma(shape + 1.0)) + np.log(uniform) / shape
    return drawn


def _normalised(logarithms: Floats) -> Floats:
    """Numbers with these logarithms, up to a factor for each row, so that rows sum to 1."""
    shares: Floats = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
