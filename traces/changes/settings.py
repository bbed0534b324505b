"""The settings of a change: whose data change, when, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    field_validator,
    model_serializer,
    model_validator,
)

from emulator.numbers import Count, CountOrZero, Number, PositiveShare, Share
from emulator.plugins import Settings, alone_is_a_list

Label = Annotated[int, Number(ge=0, le=32767)]
Value = Annotated[float, Number(ge=-1e6, le=1e6)]
Deviation = Annotated[float, Number(gt=0, le=1e6)]
Level = Annotated[float, Number(ge=0, le=1000)]

WHO = ("share", "part", "count", "names")
STARTS = ("at_round", "at_step", "at_share")
ENDS = ("until_round", "until_step", "until_share")


def _as_text(name: Any) -> Any:
    """The number of a client as its name; ValueError if it is neither a text nor a whole number."""
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ValueError("must be a text or a whole number")
    return str(name)


Name = Annotated[str, BeforeValidator(_as_text)]


class ChangedClients(Settings):
    """Which clients a change is for: a share, a part or a number of them, drawn by seed, or named ones.

    Shares, numbers and parts are cut from one random order of the clients, the same for all changes of a
    trace: so a larger share contains a smaller one, and parts of equally many are disjoint.
    """

    share: PositiveShare | None = Field(None, description="share of all clients that change")
    redraw: bool = Field(
        True, description="whether they are drawn anew at each event (`every`), or once for all"
    )
    part: Count | None = Field(None, description="which of `of` disjoint parts of the clients, from 1 on")
    of: Count | None = Field(None, description="into how many parts the clients are cut", examples=[3])
    count: Count | None = Field(None, description="number of clients that change")
    names: tuple[Name, ...] | None = Field(
        None,
        description="the clients by name, as a trace folder has them, or by number",
        examples=[("DM", "PB")],
    )

    @model_validator(mode="after")
    def _says_who_once(self) -> ChangedClients:
        given = [key for key in WHO if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: only one of {', '.join(WHO)} may be given")
        if "redraw" in self.model_fields_set and not self.is_drawn:
            raise ValueError("redraw: is for share and count, which are drawn; leave it out")
        if self.part is not None and self.of is not None and self.part > self.of:
            raise ValueError(f"part = {self.part}: must be at most of = {self.of}")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        kept = {key: value for key, value in written.items() if value is not None}
        if not self.is_drawn:
            kept.pop("redraw")
        return kept

    @property
    def is_drawn(self) -> bool:
        """Whether it is a share or a number of clients, which may be drawn anew."""
        return self.share is not None or self.count is not None

    @property
    def redraws(self) -> bool:
        """Whether each event draws its own clients."""
        return self.redraw and self.is_drawn


class Swap(Settings):
    """Pairs of labels that change places."""

    swap: tuple[tuple[Label, Label], ...] = Field(
        json_schema_extra={"minItems": 1},
        description="pairs of labels that change places",
        examples=[((3, 8), (5, 6))],
    )

    @field_validator("swap", mode="before")
    @classmethod
    def _has_pairs(cls, swap: Any) -> Any:
        pairs = swap if isinstance(swap, list | tuple) else [()]
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError("must be a list of pairs of labels, which are numbers, such as [[3, 8]]")
        return swap

    @field_validator("swap")
    @classmethod
    def _swaps_two_labels(cls, swap: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        named = [label for pair in swap for label in pair]
        for label in named:
            if named.count(label) > 1:
                raise ValueError(
                    f"{[list(pair) for pair in swap]}: has label {label} twice; a label changes places with "
                    f"one other label"
                )
        if not swap:
            raise ValueError("must have a pair of labels, such as [[3, 8]]")
        return swap


class Mixing(Settings):
    """The kind of a map of features that is drawn at random, and how far it goes."""

    kind: Literal["orthogonal", "channels", "gains", "monotone"] = Field(
        description="orthogonal: a rotation of all features; channels: another order of the first axis; "
        "gains: a factor and an offset of each feature; monotone: a curve of each feature that rises",
        examples=["orthogonal"],
    )
    strength: Share = Field(
        1.0,
        description="how far the map goes; of orthogonal, the share of each angle. 0 changes nothing, but is "
        "a drift all the same",
        examples=[0.5],
    )

    @model_validator(mode="before")
    @classmethod
    def _a_word_is_its_kind(cls, values: Any) -> Any:
        return {"kind": values} if isinstance(values, str) else values

    @model_validator(mode="after")
    def _orders_are_whole(self) -> Mixing:
        if self.kind == "channels" and self.strength not in (0, 1):
            raise ValueError(
                f"strength = {self.strength}: channels lie in another order, or do not; leave it out"
            )
        return self


class Mix(Settings):
    """Features that are mixed by a map of their own."""

    mix: Mixing = Field(
        description="features by a map that is drawn for this change: 'orthogonal', 'channels', 'gains' or "
        "'monotone', or { kind, strength }",
        examples=["orthogonal"],
    )


class Rotate(Settings):
    """A turn of images."""

    rotate: Annotated[float, Number(ge=-360, le=360)] = Field(
        description="images are turned by so many degrees, counter-clockwise", examples=[30.0]
    )


class Noise(Settings):
    """Noise that is added to features."""

    noise: Deviation = Field(
        description="standard deviation of normal noise that is added to each feature", examples=[0.5]
    )


class Replace(Settings):
    """Features that are replaced."""

    replace: tuple[Value, Value] = Field(
        description="features are replaced by uniform numbers between these two", examples=[(10.0, 1000.0)]
    )

    @field_validator("replace", mode="before")
    @classmethod
    def _has_two_limits(cls, limits: Any) -> Any:
        if not isinstance(limits, list | tuple) or len(limits) != 2:
            raise ValueError("must be [low, high]")
        return limits

    @field_validator("replace")
    @classmethod
    def _low_before_high(cls, limits: tuple[float, float]) -> tuple[float, float]:
        if limits[0] > limits[1]:
            raise ValueError(f"{list(limits)}: must be [low, high], with low at most high")
        return limits


class Line(Settings):
    """A line that numbers are mapped by."""

    scale: Value = Field(1.0, description="factor of each target", examples=[1.5])
    shift: Value = Field(0.0, description="what is then added to it, in its unit", examples=[0.2])

    @model_validator(mode="after")
    def _changes_something(self) -> Line:
        if self.scale == 1 and self.shift == 0:
            raise ValueError("scale = 1, shift = 0: changes nothing; give another scale, or a shift")
        return self


class Target(Settings):
    """Targets that are mapped by a line, as a regression line that drifts."""

    target: Line = Field(
        description="targets beside labels: t becomes t scale + shift, or with a magnitude m, "
        "t + m ((scale - 1) t + shift)",
        examples=[{"scale": 1.5, "shift": 0.2}],
    )


Relabelling = Literal["xor", "reverse", "permute", "own_swap", "rule"]
"""Operations on labels that a word alone names."""

OfFeatures = Rotate | Noise | Replace | Mix | Target
"""Operations that are applied as a row is read: those on targets, too."""

OF_LABELS = (*get_args(Relabelling), "swap")
OPERATIONS: Mapping[str, str] = dict.fromkeys(get_args(Relabelling), "word") | {
    key: key for key in ("swap", "rotate", "noise", "replace", "mix", "target")
}
"""The names of all operations, and the tag of the type of each."""


def operation_name(operation: Any) -> str:
    """The word or key that names an operation, or an entry that is to become one; empty if it has none."""
    if isinstance(operation, str):
        return operation
    keys = list(operation) if isinstance(operation, Mapping) else list(getattr(operation, "__dict__", ()))
    return str(keys[0]) if len(keys) == 1 else ""


Operation = Annotated[
    Annotated[Relabelling, Tag("word")]
    | Annotated[Swap, Tag("swap")]
    | Annotated[Rotate, Tag("rotate")]
    | Annotated[Noise, Tag("noise")]
    | Annotated[Replace, Tag("replace")]
    | Annotated[Mix, Tag("mix")]
    | Annotated[Target, Tag("target")],
    Discriminator(
        lambda operation: OPERATIONS.get(operation_name(operation)),
        custom_error_type="no_such_operation",
        custom_error_message="no such operation; must be one of "
        + ", ".join(get_args(Relabelling))
        + ", or a table with one key: swap, rotate, noise, replace, mix or target",
    ),
]


class Curve(Settings):
    """A number that is constant, or moves evenly from one value to another over some rounds."""

    start: Level = Field(alias="from", description="the value at the onset")
    end: Level = Field(alias="to", description="the value `over` rounds after the onset, and from then on")
    over: CountOrZero = Field(description="rounds from the one value to the other; data steps change it")

    @model_validator(mode="before")
    @classmethod
    def _a_number_is_constant(cls, values: Any) -> Any:
        if isinstance(values, int | float) and not isinstance(values, bool):
            return {"from": values, "to": values, "over": 0}
        if not isinstance(values, Mapping | Curve):
            raise ValueError("must be a number, or a table { from, to, over }")
        return values

    @model_validator(mode="after")
    def _takes_a_while(self) -> Curve:
        if self.over == 0 and not self.is_constant:
            raise ValueError("over = 0: must be at least 1, the rounds from one value to the other")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        return self.start if self.is_constant else handler(self)

    @property
    def is_constant(self) -> bool:
        """Whether it has one value only."""
        return self.start == self.end


def _operations(what: Any) -> Any:
    """A list of operations, of one if it is alone; ValueError for what can be none."""
    entries = alone_is_a_list(what)
    if not isinstance(entries, list | tuple):
        raise ValueError("must be a word such as 'xor', a table such as { rotate = 30 }, or a list of them")
    tables = [key for key, tag in OPERATIONS.items() if tag != "word"]
    for entry in entries:
        if isinstance(entry, str) and entry in tables:
            raise ValueError(f"{entry!r} needs a value: write a table, {{ {entry} = ... }}")
        if isinstance(entry, Mapping) and {"mix", "strength"} == {*entry}:
            raise ValueError(
                f"strength is of the mix: {{ mix = {{ kind = {entry['mix']!r}, strength = ... }} }}"
            )
        if isinstance(entry, Mapping) and len(entry) > 1:
            raise ValueError(f"has {' and '.join(entry)} in one table; give each a change of its own")
        if isinstance(entry, Mapping) and not set(entry) <= set(tables):
            raise ValueError(
                f"{next(iter(entry))!r}: no such operation; tables have one of {', '.join(tables)}"
            )
    return entries


def _list_of_tables(changes: Any) -> Any:
    """ValueError for a table where a list of tables belongs."""
    if isinstance(changes, Mapping):
        raise ValueError("must be a list of tables: write [[trace.changes]], or changes = [{ ... }]")
    return changes


class Change(Settings):
    """A change: what becomes of whose data, and when."""

    what: Annotated[tuple[Operation, ...], BeforeValidator(_operations)] = Field(
        json_schema_extra={"minItems": 1},
        description="labels: 'xor', 'reverse', 'permute', 'own_swap', 'rule' (of made data: another one) or "
        "{ swap = [[3, 8]] }; features: { rotate = 30 }, { noise = 0.5 }, { replace = [0, 1] } or "
        "{ mix = 'orthogonal' }; targets: { target = { scale = 1.5, shift = 0.2 } }; with a pattern, a list "
        "of them",
    )
    on: Literal["arrivals", "held"] = Field(
        description="arrivals: what arrives from the onset on, and keeps its change; held: also all that a "
        "client holds then, which is sent anew, and once more at the end, unchanged"
    )
    clients: ChangedClients | None = Field(
        None,
        description="whose data change: { share, redraw }, { part, of }, { count, redraw } or { names }; "
        "all, if omitted",
    )
    splits: tuple[Literal["train", "test"], ...] = Field(
        ("train", "test"), min_length=1, description="whether training samples change, test samples, or both"
    )
    at_round: CountOrZero | None = Field(None, description="round of the onset, which begins a data step")
    at_step: CountOrZero | None = Field(None, description="data step of the onset, instead of a round")
    at_share: Share | None = Field(
        None, description="onset as a share of the run's data steps, rounded to a whole step", examples=[0.5]
    )
    until_round: Count | None = Field(
        None, description="round from which on it is over; without an end it stays"
    )
    until_step: Count | None = Field(None, description="data step from which on it is over")
    until_share: PositiveShare | None = Field(
        None, description="the end as a share of the run's data steps, rounded to a whole step"
    )
    every: Count | None = Field(
        None,
        description="rounds after which own_swap clients swap again, with `staggered` more clients change, "
        "and otherwise the change begins anew",
    )
    staggered: PositiveShare | None = Field(
        None,
        description="share of the clients that changes at the onset, and again at each `every`",
        examples=[0.2],
    )
    pattern: str | tuple[str, ...] | None = Field(
        None,
        description="instead of clients and times: a FedDrift pattern, or rows of digits, one for each data "
        "step and one for the last test: 0 is unchanged, d the d-th of `what`",
        examples=[("00", "01", "11")],
    )
    samples: Curve = Field(
        1.0,
        validate_default=True,
        description="share of a client's samples that change: a number, or { from, to, over } in rounds",
    )
    magnitude: Curve = Field(
        1.0,
        validate_default=True,
        description="factor of a change of features or targets, such as its degrees: a number, or { from, "
        "to, over } in rounds",
    )
    cumulative: bool = Field(
        False,
        description="whether each data step of the curves changes newly drawn samples, on top of earlier "
        "changes",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Change:
        self._refuse_two_times()
        self._check_operations()
        if self.pattern is not None:
            self._refuse_beside_a_pattern()
        elif self.is_own_swap:
            self._check_own_swap()
        if self.samples.start > 1 or self.samples.end > 1:
            raise ValueError(
                f"samples: is up to {max(self.samples.start, self.samples.end):g}; must be a share, 0 to 1"
            )
        return self

    def _refuse_two_times(self) -> None:
        for keys in (STARTS, ENDS):
            given = [key for key in keys if getattr(self, key) is not None]
            if len(given) > 1:
                raise ValueError(f"{' and '.join(given)}: only one of {', '.join(keys)} may be given")
        start, end = self.onset_key, self.end_key
        if start is not None and end is not None and start.split("_")[1] == end.split("_")[1]:
            first, last = getattr(self, start), getattr(self, end)
            if last <= first:
                raise ValueError(f"{end} = {last}: must be after the onset, {start} = {first}")

    def _check_operations(self) -> None:
        if not self.what:
            raise ValueError("what: an empty list changes nothing; must have an operation")
        if len(self.what) > 1 and self.pattern is None:
            raise ValueError(
                "what: a list needs a pattern, whose digits choose from it; give each its own change"
            )
        self._check_mixes()
        of_labels = [name in OF_LABELS for name in self.names]
        if any(of_labels) and not all(of_labels):
            raise ValueError("what: a list has changes of labels or of features, not both; make two changes")
        if "rule" in self.names and set(self.names) != {"rule"}:
            raise ValueError("what: a list has 'rule' alone, or other changes of labels; make two changes")
        if not self.cumulative:
            return
        if any(of_labels) or self.on != "held":
            raise ValueError("cumulative: is for changes of features of held data; leave it out")
        if self.samples.is_constant and self.magnitude.is_constant:
            raise ValueError(
                "cumulative: needs a curve { from, to, over }, each data step of which adds a change"
            )

    def _refuse_beside_a_pattern(self) -> None:
        keys = ("clients", *STARTS, *ENDS, "every", "staggered")
        given = [key for key in keys if getattr(self, key) is not None]
        if given:
            raise ValueError(f"pattern cannot be combined with {', '.join(given)}: it says who changes when")
        if "own_swap" in self.names:
            raise ValueError("pattern cannot be combined with own_swap, which draws two labels at each event")
        if not (self.samples.is_constant and self.magnitude.is_constant):
            raise ValueError("pattern cannot be combined with a curve { from, to, over }; give a number")

    def _check_own_swap(self) -> None:
        if self.on != "held":
            raise ValueError("own_swap: swaps two labels that a client holds; must have on = 'held'")
        if self.every is None or self.clients is None or self.clients.share is None:
            raise ValueError(
                "own_swap: needs clients = { share, redraw } alone, and every, the rounds between swaps"
            )
        if not (self.samples.is_constant and self.samples.start == 1) or self.staggered is not None:
            raise ValueError("own_swap: changes all samples of its clients; leave out samples and staggered")
        if len(self.splits) != 2:
            raise ValueError("own_swap: changes both splits; leave out splits")

    def _check_mixes(self) -> None:
        most = max(self.magnitude.start, self.magnitude.end)
        for operation in self.what:
            if not isinstance(operation, Mix):
                continue
            if operation.mix.kind == "channels" and not (self.magnitude.is_constant and most == 1):
                raise ValueError("magnitude: channels lie in another order, or do not; leave it out")
            if operation.mix.strength * most > 1:
                raise ValueError(
                    f"magnitude: is up to {most:g}; must be at most 1 with strength = "
                    f"{operation.mix.strength:g}, by which it is multiplied"
                )

    @field_validator("splits")
    @classmethod
    def _splits_differ(cls, splits: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(splits)) < len(splits):
            raise ValueError(f"{list(splits)}: has a split twice")
        return splits

    @field_validator("pattern", mode="before")
    @classmethod
    def _is_a_pattern(cls, pattern: Any) -> Any:
        if pattern is None:
            return None
        from traces.patterns import SEEDED, named_pattern, read_pattern  # which few configurations need

        if isinstance(pattern, str):
            if pattern != SEEDED:
                named_pattern(pattern)
        elif isinstance(pattern, list | tuple):
            read_pattern(pattern)
        else:
            raise ValueError("must be the name of a pattern, or a list of rows of digits")
        return pattern

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The keys that were given, so that a change is recorded as it was written."""
        kept = {key: value for key, value in handler(self).items() if key in self.model_fields_set}
        if len(self.what) == 1:
            kept["what"] = kept["what"][0]
        return kept

    @property
    def onset_key(self) -> str | None:
        """The key that says when it begins."""
        return next((key for key in STARTS if getattr(self, key) is not None), None)

    @property
    def end_key(self) -> str | None:
        """The key that says when it ends."""
        return next((key for key in ENDS if getattr(self, key) is not None), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what it does, such as "xor" or "rotate"; most changes do one thing."""
        return tuple(map(operation_name, self.what))

    @property
    def is_own_swap(self) -> bool:
        """Whether clients swap two of their own labels, which are drawn at each event."""
        return self.names[0] == "own_swap"

    @property
    def changes_labels(self) -> bool:
        """Whether it changes labels; otherwise, features or targets."""
        return self.names[0] in OF_LABELS


class ChangingSettings(Settings):
    """The settings of a source whose data may change."""

    changes: Annotated[tuple[Change, ...], BeforeValidator(_list_of_tables)] = Field(
        (),
        description="changes of labels, features or targets, applied in order: whose data change, when, and "
        "how",
    )
