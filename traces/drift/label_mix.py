"""Label drift: clients move between latent label mixes, one by one or in mass events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number, PositiveShare, Share
from emulator.plugins import Settings
from traces.drift.base import Drift

MixCount = Annotated[int, Number(ge=1, le=10**4)]


class MassEvent(Settings):
    """A mass event: at `round`, `share` of all clients move to `mixes` mixes that no client had before.

    Data arrive every `rounds_per_step` rounds: the first arrivals at `round` or later are of the new mixes.
    An event after the last arrivals of the run is an error.
    """

    round: Count = Field(description="the first arrivals at this round or later are of the new mixes")
    share: PositiveShare = Field(description="share of all clients that move")
    mixes: MixCount = Field(4, description="number of new mixes they move to")


class MixShape(Settings):
    """The latent mixes, and how far clients deviate from them."""

    mixes: MixCount = Field(4, description="latent label mixes at the start")
    labels_per_mix: Count = Field(3, description="labels that a mix favours, equally")
    background: Share = Field(0.05, description="share spread evenly over all labels")
    concentration: Annotated[float, Number(gt=0, le=1e9)] = Field(
        100.0, description="Dirichlet concentration of a client's own shares around its mix"
    )


class LabelMixSettings(MixShape):
    """The latent mixes, and how clients move between them."""

    move_probability: Share = Field(
        0.02, description="a client's chance, at each step, to move to another mix in use", examples=[0.1]
    )
    events: tuple[MassEvent, ...] = Field(
        (),
        description="mass events { round, share, mixes }: this share of all clients moves to new mixes",
    )


class LabelMix(Drift):
    """Clients move between latent label mixes, one by one or in mass events.

    A latent mix favours a few labels. A client's shares are Dirichlet-distributed around its mix, drawn anew
    each time it moves. Mixes are dealt from a shuffled deck of labels, so that they overlap as little as the
    number of labels allows, and no two are the same set. After a mass event the mixes in use, which single
    moves go to, are the new ones.

    Source: ours.

    With one label per mix and no spread, each client has the label of its mix only:

    >>> one_label = {"labels_per_mix": 1, "background": 0, "concentration": 1e9}
    >>> drift = LabelMix(LabelMixSettings(mixes=2, move_probability=1, **one_label))
    >>> windows = drift.shares(
    ...     num_clients=3,
    ...     num_windows=2,
    ...     num_labels=2,
    ...     first_step=0,
    ...     rounds_per_step=10,
    ...     generator=np.random.default_rng(0),
    ... )
    >>> next(windows).round(3).tolist()
    [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> next(windows).round(3).tolist()  # every client has moved to the other mix
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """

    Settings: ClassVar[type[Settings]] = LabelMixSettings
    settings: LabelMixSettings
    same_holders = True

    def shares(
        self,
        num_clients: int,
        num_windows: int,
        num_labels: int,
        first_step: int,
        rounds_per_step: int,
        generator: np.random.Generator,
    ) -> Iterator[Floats]:
        settings = self.settings
        deck = _Deck(settings, num_labels, generator)
        in_use = deck.deal(settings.mixes)
        mix = in_use[generator.integers(len(in_use), size=num_clients)]
        shares = deck.client_shares(mix)
        events = _by_step(settings.events, rounds_per_step, first_step + num_windows - 1)
        for window in range(num_windows):
            step = first_step + window
            moving = np.zeros(num_clients, dtype=bool)
            if step > 0:
                moving = generator.random(num_clients) < settings.move_probability
                mix = np.where(moving, _another(mix, in_use, generator), mix)
            if step in events:
                event = events[step]
                struck = generator.permutation(num_clients)[: round(event.share * num_clients)]
                in_use = deck.deal(event.mixes)
                mix[struck] = in_use[generator.integers(len(in_use), size=len(struck))]
                moving[struck] = True
            if moving.any():
                shares = shares.copy()  # a yielded array is not modified
                shares[moving] = deck.client_shares(mix[moving])
            yield shares


def _by_step(events: tuple[MassEvent, ...], rounds_per_step: int, last_step: int) -> dict[int, MassEvent]:
    """The mass events, by the data step whose arrivals they change.

    Raises ConfigurationError if two events change the same step, or one a step after `last_step`.
    """
    event_at: dict[int, MassEvent] = {}
    for event in events:
        step = -(-event.round // rounds_per_step)
        if step > last_step:
            # Data that is static arrives in round 0 alone, however many rounds there are.
            arriving = "with trace.static = false, " if last_step == 0 else ""
            raise ConfigurationError(
                f"trace.drift.events: the event of round {event.round} would show in the arrivals of round "
                f"{step * rounds_per_step}, and the last arrivals of the run are those of round "
                f"{last_step * rounds_per_step}: {arriving}raise round.rounds above "
                f"{step * rounds_per_step}, move the event, or leave it out (--set 'trace.drift.events=[]')"
            )
        if step in event_at:
            raise ConfigurationError(
                f"trace.drift.events: rounds {event_at[step].round} and {event.round} fall into the same "
                f"arrivals, those of round {step * rounds_per_step} (rounds_per_step = {rounds_per_step})"
            )
        event_at[step] = event
    return event_at


class _Deck:
    """Deals latent mixes, and draws clients' shares around them."""

    def __init__(self, shape: MixShape, num_labels: int, generator: np.random.Generator) -> None:
        too_many = shape.labels_per_mix > num_labels
        if too_many and shape.background < 1:
            raise ConfigurationError(
                f"trace.drift.labels_per_mix = {shape.labels_per_mix}: the images have {num_labels} labels"
            )
        self._favours_all = too_many  # background = 1: no mix favours a label, so their number has no effect
        self._shape = shape
        self._num_labels = num_labels
        self._generator = generator
        self._labels: list[int] = []
        self._seen: set[frozenset[int]] = set()
        self._mixes = np.zeros((0, num_labels))

    def deal(self, count: int) -> Ints:
        """(count,) ids of new mixes, none of which was dealt before.

        Raises ConfigurationError if there are no more to deal.
        """
        for _ in range(count):
            chosen = self._unseen_set()
            self._seen.add(chosen)
            mix = np.full(self._num_labels, self._shape.background / self._num_labels)
            mix[sorted(chosen)] += (1 - self._shape.background) / len(chosen)
            self._mixes = np.vstack([self._mixes, mix])
        return np.arange(len(self._mixes) - count, len(self._mixes))

    def client_shares(self, mix: Ints) -> Floats:
        """(len(mix), num_labels) shares drawn around each client's mix."""
        # In place: with a million clients each array of this shape takes 80 MB.
        alpha = np.maximum(self._shape.concentration * self._mixes, 1e-12)
        shares = self._generator.standard_gamma(alpha[mix])
        np.maximum(shares, 1e-300, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _unseen_set(self) -> frozenset[int]:
        if self._favours_all:
            return frozenset(range(self._num_labels))
        size = self._shape.labels_per_mix
        for _ in range(1000):
            while len(self._labels) < size:
                fresh = self._generator.permutation(self._num_labels).tolist()
                self._labels += [label for label in fresh if label not in self._labels]
            chosen, self._labels = frozenset(self._labels[:size]), self._labels[size:]
            if chosen not in self._seen:
                return chosen
        # Nearly all have been dealt. Whether there is one more must not depend on the draws: a check relies
        # on it.
        every = map(frozenset, itertools.combinations(range(self._num_labels), size))
        unseen = [chosen for chosen in every if chosen not in self._seen]
        if not unseen:
            raise ConfigurationError(
                f"trace.drift: {len(self._seen)} mixes of {size} of {self._num_labels} labels are all there "
                f"are to deal; set fewer mixes, or change labels_per_mix"
            )
        return unseen[self._generator.integers(len(unseen))]


def _another(mix: Ints, in_use: Ints, generator: np.random.Generator) -> Ints:
    """(clients,) for each client a mix in use other than its present one, if there is another."""
    draw = generator.integers(len(in_use), size=len(mix))
    same = in_use[draw] == mix
    draw = np.where(same, (draw + 1) % len(in_use), draw)
    return in_use[draw]
