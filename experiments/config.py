"""The configuration of an experiment: its tables, with their defaults and rules.

An unknown key or part, or a value that breaks a rule, raises a ConfigurationError of one line, which names
the file and the key; `remedies/mistakes.py` words it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from coordinator.adaptations import ADAPTATIONS, Adaptation
from coordinator.aggregators import AGGREGATORS, Aggregator
from coordinator.clusterers import CLUSTERERS, Clusterer
from coordinator.detectors import DETECTORS, Detector
from coordinator.memories import MEMORIES, Memory
from coordinator.pacing import PACINGS, Pacing
from coordinator.population import FaultSettings, Hear
from coordinator.representations import REPRESENTATIONS, Representation
from coordinator.representations.base import ReferenceSettings
from coordinator.schedules import SCHEDULES, Schedule
from coordinator.selectors import SELECTORS, Selector
from device_profiles import SUFFIXES as PROFILE_SUFFIXES
from emulator.assigning import Assign
from emulator.counts import LastBatch
from emulator.errors import ConfigurationError, InputError
from emulator.latency import Jitter
from emulator.messages import FurtherAccuracy
from emulator.numbers import (
    Count,
    CountOrZero,
    Duration,
    LocalEpochs,
    LocalSteps,
    Number,
    PositiveFactor,
    PositiveShare,
    Seed,
)
from emulator.plugins import FIRST_LOOK, ChoiceOf, Chosen, Settings, alone_is_a_list
from emulator.storage.table_paths import TABLE_SUFFIXES, TablePath
from executor.models import MODELS
from executor.objectives import OBJECTIVES
from executor.rules import RULES
from executor.settings import Batches, BatchNorm, ExecutorSettings
from experiments.extending import UseOf, beside, value_at
from experiments.results.reading.not_recorded import DETECTION
from experiments.results.reading.recorded import (
    MOST_EXPERIMENT_BYTES,
    MOST_NAME_BYTES,
    MOST_TARGETS,
    REFERENCE,
    WITHOUT_CLUSTERS,
    AtlasChoice,
    Target,
    at_threshold,
    is_target,
    is_threshold,
    refuse_too_many_runs,
)
from traces.availability import AVAILABILITIES, AvailabilitySource
from traces.sources import SOURCES, TraceSource

MOST_BATCH = 10**5
MOST_KEPT_BYTES = 64 * 10**6
MOST_TRIED = 5  # values of a key in a tune

THRESHOLDS = "thresholds"
"""The key of a detector with the values of its threshold, at each of which it is played."""


def _availability_by_path(value: Any) -> Any:
    """The table of the source `intervals`, if `value` is the path of a table file; otherwise `value`.

    So is a table with the `path`; and one with the path as `kind`, as which an option that sets a key beside
    it finds it.
    """
    given = value if isinstance(value, Mapping) else {"kind": value}
    if "path" in given and "kind" not in given:
        return {"kind": "intervals", "windows": value}
    kind = given.get("kind")
    if isinstance(kind, str) and kind.endswith(TABLE_SUFFIXES):
        windows = given.get("windows", {})
        windows = {"path": kind, **windows} if isinstance(windows, Mapping) else windows
        return {**given, "kind": "intervals", "windows": windows}
    return value


def _number_or_flops(value: Any) -> Any:
    if isinstance(value, str) and value != "flops":
        raise ValueError('must be a number, or "flops"')
    return value


def _number_alone(value: Any) -> Any:
    """A list of one, if `value` is a number: a published mean alone; otherwise `value`."""
    return [value] if isinstance(value, int | float) else value


class Devices(Settings):
    """The devices of the clients: how fast they are, and when they are online."""

    profile: TablePath = Field(
        "smartphones",
        validate_default=True,
        description="a catalogue name, or the path of a table or a .toml",
    )
    availability: Annotated[
        Chosen[AvailabilitySource],
        ChoiceOf(AVAILABILITIES),
        BeforeValidator(_availability_by_path),
    ] = Field(
        "always",
        validate_default=True,
        description="when clients are online: a source, or the path of a table of intervals",
    )
    assign: Assign = Field(
        "draw",
        description="which client has which row of the tables of speeds and hours: draw, both at "
        "once if all ids of the profile are ids of the hours; by_name, the row whose id is the name of "
        "the client in the trace, as written; by_index, client i row i, after the last row the first again",
    )
    unmatched: Literal["refuse", "draw"] = Field(
        "refuse",
        description="with by_name: refuse clients that have no row, or draw a row for them",
        examples=["draw"],
    )
    time_model: Literal["driftscale", "fedscale"] = Field(
        "driftscale",
        description="how work becomes virtual seconds: latency, two bandwidths and the model's cost, or "
        "FedScale's formula, with one bandwidth and without the model; a visit drops out when its client "
        "goes offline, or with fedscale at dispatch, if its client is offline at its end (a cohort that "
        "would drop out as a whole does so when its clients go offline); known at once, without a time-out",
    )
    model_factor: Annotated[
        Annotated[float, Number(gt=0, le=1e9)] | Literal["flops"], BeforeValidator(_number_or_flops)
    ] = Field(
        "flops",
        description="how many times slower than the profile's reference model a sample is trained; "
        '"flops": the FLOPs of the one over those of the other',
    )

    jitter: Jitter = Field(
        Jitter(),
        description="how far times lie from the profile's: the standard deviations of the logs of factors of "
        "median 1",
    )

    @model_validator(mode="after")
    def _jitters_as_driftscale(self) -> Devices:
        if self.time_model == "fedscale" and self.jitter != Jitter():
            raise ValueError(
                "jitter beside time_model = 'fedscale', which has FedScale's times; leave one of them out"
            )
        return self

    @model_validator(mode="after")
    def _draws_the_unmatched_by_name(self) -> Devices:
        if self.unmatched == "draw" and self.assign != "by_name":
            raise ValueError(
                f"unmatched = 'draw': is of assign = 'by_name', not of {self.assign!r}; leave it out"
            )
        return self

    def find_files(self, locate: Callable[[str], Path]) -> None:
        """Find the table of the profile, and those of the availability; see `Settings.find_files`."""
        if self.profile.path.endswith(PROFILE_SUFFIXES):
            locate(self.profile.path)
        super().find_files(locate)


class Start(Settings):
    """A file of models that a run starts from."""

    file: str = Field(description="a .safetensors: the models.safetensors of a run, or a published one")
    cluster: Annotated[int, Number(ge=0, le=10**9)] | None = Field(
        None, description="whose model it is, in the file of a run that has several", examples=[2]
    )
    head: Literal["kept", "new"] = Field(
        "kept",
        description="new: the last layer is drawn anew, as for other labels; the file need not have it",
        examples=["new"],
    )

    @field_validator("file")
    @classmethod
    def _is_of_tensors_alone(cls, file: str) -> str:
        if not file.endswith(".safetensors"):
            raise ValueError(
                "must be a .safetensors, as ARM/seed-0/models.safetensors of a run directory; other formats "
                "can hold code, and are not read"
            )
        return file

    def find_files(self, locate: Callable[[str], Path]) -> None:
        """Find the file; see `Settings.find_files`."""
        locate(self.file)


def _file_alone(value: Any) -> Any:
    """A table with the file, if `value` is its path; otherwise `value`."""
    return {"file": value} if isinstance(value, str) else value


class Training(Settings):
    """The local training of a participant; local steps and batch size also determine its virtual time."""

    model: Annotated[Chosen[Any], ChoiceOf(MODELS)] = Field(
        "mlp", validate_default=True, description="the model that is trained"
    )
    objective: Annotated[Chosen[Any], ChoiceOf(OBJECTIVES)] | None = Field(
        None,
        description="what the model is trained on and scored by, the same in all arms; if omitted, what a "
        "trace folder says, or else labels",
        examples=["next_token"],
    )
    local_steps: LocalSteps = Field(20, description="steps of a visit, one batch each")
    local_epochs: LocalEpochs | None = Field(
        None,
        description="passes of a visit over what the client holds, instead of local_steps: "
        "ceil(samples / batch_size) steps each; the most, with a rule that stops early",
        examples=[2],
    )
    last: LastBatch = Field(
        "filled",
        description="last batch of a pass, with local_epochs: filled from the next pass, or short, with what "
        "is left",
        examples=["short"],
    )
    batch_size: Annotated[int, Number(ge=1, le=MOST_BATCH)] = Field(20, description="samples per batch")
    batches: Batches = Field(
        "reshuffled",
        description="reshuffled: samples are permuted for each pass, and a step takes the next batch; fixed: "
        "they are permuted once per client and data step and cut into batches, of which a step "
        "draws one with replacement",
    )
    learning_rate: PositiveFactor = Field(0.05, description="learning rate of a local step")
    batch_norm: BatchNorm | None = Field(
        None,
        description="what becomes of batch norm: averaged, its running statistics by samples; kept, its "
        "layers stay with each client, as in FedBN; if omitted, averaged. For models with batch norm only",
        examples=["kept"],
    )
    start: Annotated[Start, BeforeValidator(_file_alone)] | None = Field(
        None,
        description="the model that a run starts from, as the path of its file or a table; if omitted, drawn",
        examples=["models.safetensors"],
    )

    @model_validator(mode="after")
    def _counts_steps_or_epochs(self) -> Training:
        if self.local_epochs is not None and "local_steps" in self.model_fields_set:
            raise ValueError(
                f"local_steps = {self.local_steps} beside local_epochs = {self.local_epochs}: a visit is of "
                f"steps or of epochs; give one of them"
            )
        if self.last == "short" and self.local_epochs is None:
            raise ValueError("last = 'short': needs local_epochs, whose passes have a last batch")
        if self.last == "short" and self.batches == "fixed":
            raise ValueError("last = 'short': needs batches = 'reshuffled', since fixed batches are drawn")
        return self


class StatedObjective(BaseModel):
    """The objective that a trace states, as its file has it."""

    objective: Annotated[Chosen[Any], ChoiceOf(OBJECTIVES)]


class ReferenceModel(BaseModel):
    """The `model` of a representation, which leaves it as the file has it."""

    model: Annotated[Chosen[Any], ChoiceOf(MODELS)]


def _with_valid_model(chosen: Chosen[Representation], info: ValidationInfo) -> Chosen[Representation]:
    """`chosen`, after validating the settings of its reference model, which it keeps as they are."""
    model = getattr(chosen.settings, "model", None)
    if isinstance(chosen.settings, ReferenceSettings) and model is not None:
        try:
            ReferenceModel.model_validate({"model": model}, context=info.context)
        except ValidationError as error:
            from experiments.remedies.mistakes import mistakes

            raise ValueError(mistakes(error, {"model": model})[0]) from error
    return chosen


class Round(Settings):
    """Rounds: their number and size, how long they wait for clients, and when they are evaluated."""

    rounds: Count = Field(description="rounds of a run; with seconds_per_round, nominal ones")
    seconds_per_round: Duration | None = Field(
        None,
        description="virtual seconds of a nominal round: a run ends after round.rounds of these, however "
        "many rounds an arm closes, and data steps and events take effect in the first round "
        "that opens at or after their instant. Without it, all arms have the same number of "
        "rounds",
    )
    participants: Count = Field(description="visits that a round absorbs, over all lanes")
    over_commit: Annotated[float, Number(ge=1, le=1e6)] = Field(
        1.3, description="visits that are opened, as a multiple of the participants of a lane"
    )
    min_online: Count = Field(1, description="a round waits until this many candidates are online")
    max_wait_days: Duration = Field(30.0, description="virtual days after which that wait is given up")
    hear: Hear = Field(
        "online",
        description="clients with new data that report: online: those online when a round is opened, the "
        "others at a later opening at which they are; everyone: also those offline, which nobody waits for; "
        "check_in: the others as soon as they come online, also between rounds (gradients at the global "
        "model: as online)",
    )
    evaluate_every: Count = Field(1, description="rounds between evaluations; the last is always evaluated")
    evaluate_every_s: Duration | None = Field(
        None,
        description="virtual seconds between evaluations: the first round that closes at or after each "
        "multiple is evaluated, and the last one",
    )
    evaluate_clients: Count | None = Field(
        None,
        description="clients that are scored, a fixed random sample; all, if omitted or not fewer",
    )
    nonfinite_updates: Literal["drop", "stop"] = Field(
        "drop",
        description="an update with NaN or infinity is left out, counted and logged, or it ends the run; so "
        "is a copy that an adaptation trains",
    )
    accuracies: list[FurtherAccuracy] = Field(
        [],
        description="further accuracies at each evaluation: `trained`, of the participants with what they "
        "have just trained; `pooled`, over the test samples of all clients in one pool",
        examples=[["trained", "pooled"]],
    )
    log_client_accuracy: bool = Field(
        False,
        description="log the accuracy of every scored client, and the label that it holds most of, at each "
        "evaluation",
    )
    log_model_accuracy: bool = Field(
        False,
        description="log the accuracy of every federated model, each test read in the way of its client, and "
        "before any other adaptation, on the tests of every true concept, at each evaluation; needs a trace "
        "that knows its concepts",
    )
    log_visits: bool = Field(
        False, description="write every visit into visits.parquet: its phases, end, outcome, bytes and device"
    )
    client_distance: Annotated[Chosen[Representation], ChoiceOf(REPRESENTATIONS)] = Field(
        "label",
        validate_default=True,
        description="in which representation of what clients hold the logged distances between them are "
        "measured, by its own distance, free of charge; not at the present models",
    )

    @model_validator(mode="after")
    def _evaluates_by_rounds_or_by_time(self) -> Round:
        if self.evaluate_every_s is not None and "evaluate_every" in self.model_fields_set:
            raise ValueError(
                f"evaluate_every = {self.evaluate_every} beside evaluate_every_s = "
                f"{self.evaluate_every_s:g}: evaluations follow rounds or virtual time; give one of them"
            )
        return self

    @property
    def counted(self) -> str:
        """What `rounds` counts, in messages."""
        return "round" if self.seconds_per_round is None else "nominal round"

    def reached(self, closed: int, now_s: float) -> int:
        """How many of `rounds` are done, after a run has `closed` so many, and at virtual time `now_s`.

        >>> run = Round(rounds=200, participants=10, seconds_per_round=300)
        >>> run.reached(316, 30_000.0), run.reached(700, 60_000.0)
        (100, 200)
        >>> Round(rounds=200, participants=10).reached(100, 30_000.0)
        100
        """
        if self.seconds_per_round is None:
            return closed
        is_over = now_s >= self.rounds * self.seconds_per_round
        return self.rounds if is_over else min(int(now_s // self.seconds_per_round), self.rounds - 1)

    @property
    def closed(self) -> int | None:
        """How many rounds a run closes; None with `seconds_per_round`, where only its end shows it."""
        return self.rounds if self.seconds_per_round is None else None

    def stops_at(self, until: int | None) -> int | None:
        """After how many closed rounds --until `until` stops a run; None: it is played to its end.

        Raises ConfigurationError if it has fewer rounds, or if none is evaluated by then.
        """
        if until is None or until == self.closed:
            return None
        if type(until) is not int or not 1 <= until <= (self.closed or until):
            most = f"to {self.closed} (round.rounds)" if self.closed else "on"
            raise ConfigurationError(f"--until {until!r}: must be a number of rounds, from 1 {most}")
        if self.evaluate_every_s is None and until < self.evaluate_every:
            raise ConfigurationError(
                f"--until {until}: is before round.evaluate_every = {self.evaluate_every}"
            )
        return until

    @field_validator("client_distance")
    @classmethod
    def _measure_is_valid(
        cls, chosen: Chosen[Representation], info: ValidationInfo
    ) -> Chosen[Representation]:
        if chosen.build().at_present_models:
            raise ValueError(
                'at = "global": must be "frozen", since a measure at the present models changes with them'
            )
        return _with_valid_model(chosen, info)


class Checkpoint(Settings):
    """How often an unfinished run is stored for resuming; it is stored also when it is told to stop."""

    every_s: Duration = Field(60.0, description="wall seconds between two checkpoints, at most")
    every_rounds: Count | None = Field(None, description="rounds between two checkpoints, at most")


def _auto_or_not(value: Any) -> Any:
    if value != "auto" and not isinstance(value, bool):
        raise ValueError('must be "auto", true or false')
    return value


class Output(Settings):
    """What a run leaves besides its log."""

    models: Annotated[StrictBool | Literal["auto"], BeforeValidator(_auto_or_not)] = Field(
        "auto",
        description="whether a finished run keeps its models, in models.safetensors; auto: if they take at "
        f"most {MOST_KEPT_BYTES // 10**6} MB, and with them what clients have of their own if that fits, too",
    )

    @property
    def most_bytes(self) -> float:
        """How many bytes the models of a run may take."""
        return float(MOST_KEPT_BYTES if self.models == "auto" else inf if self.models else 0)


Percent = Annotated[float, Number(ge=0, le=100)]
PublishedValue = Annotated[
    tuple[Percent, ...], Field(min_length=1, max_length=2), BeforeValidator(_number_alone)
]


class Published(Settings):
    """Accuracies of arms in a paper: a mean, or a mean and a standard deviation, in percent."""

    accuracy_omitting_drift: dict[str, PublishedValue] = Field(
        default_factory=dict, description="by arm: mean accuracy over all cells but drift cells, in percent"
    )
    accuracy_including_drift: dict[str, PublishedValue] = Field(
        default_factory=dict, description="by arm: mean accuracy over all cells, in percent"
    )


def _target_accuracy(value: Any) -> Any:
    if not is_target(value):
        raise ValueError(f'must be an accuracy above 0, at most 1, or "{REFERENCE}"')
    return value


TargetAccuracy = Annotated[PositiveShare | Literal["reference"], BeforeValidator(_target_accuracy)]


def _first_and_last(rounds: Any) -> Any:
    if not isinstance(rounds, list | tuple) or len(rounds) != 2:
        raise ValueError("must be [first, last], two rounds")
    return rounds


class Report(Settings):
    """The report: how time-to-accuracy is computed, and published values to show beside our accuracies."""

    window: Count = Field(5, description="evaluations in the trailing mean of accuracy")
    horizon_s: Duration | None = Field(
        None, description="virtual seconds that are compared; if omitted, as far as every run reaches"
    )
    targets: tuple[TargetAccuracy, ...] = Field(
        (),
        max_length=MOST_TARGETS,
        description='accuracies to time; "reference" is what the first arm has at the horizon, by seed',
    )
    published: Published | None = Field(None, description="published values, shown beside ours")
    headline: str | None = Field(
        None,
        description="arm of the report's headline; if omitted, with baselines the last arm that is neither "
        "baseline nor oracle, or else all arms",
    )
    first: str | None = Field(
        None,
        description="figure or table with which the report opens in place of accuracy; of a figure and a "
        "table of one name, the figure",
    )

    @model_validator(mode="before")
    @classmethod
    def _read_one_target(cls, values: Any) -> Any:
        """Read `target`, the earlier name for a single target, as a list of one."""
        if not isinstance(values, Mapping) or "target" not in values:
            return values
        if "targets" in values:
            raise ValueError("target is an earlier name of targets; give only targets")
        try:
            targets = [_target_accuracy(values["target"])]
        except ValueError as error:
            raise ValueError(f"target = {values['target']!r}: {error}") from error
        return {
            "targets": targets,
            **{key: value for key, value in values.items() if key != "target"},
        }

    @field_validator("targets")
    @classmethod
    def _targets_differ(cls, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        if len(set(targets)) < len(targets):
            raise ValueError("every target may be given only once")
        return targets


Rounds = Annotated[tuple[CountOrZero, CountOrZero], BeforeValidator(_first_and_last)]
"""A first and a last round, both included."""


class Detection(Settings):
    """How detectors are scored against the truth; with it, logs carry their decisions."""

    positive: Annotated[
        Annotated[Literal["changed"], Tag("word")]
        | Annotated[Rounds, Tag("rounds")]
        | Annotated[dict[str, Rounds], Tag("table")],
        Discriminator(
            lambda positive: {str: "word", list: "rounds", tuple: "rounds", dict: "table"}.get(
                type(positive)
            ),
            custom_error_type="no_such_rounds",
            custom_error_message="must be 'changed', [first, last], or a table of such rounds by kind",
        ),
    ] = Field(
        "changed",
        description="when a decision about a client should be a flag: changed, while its concept is not that "
        "of before first_round; [first, last], only in these rounds of that time; or such rounds "
        "by kind of drift, as { rotate = [19, 29] }: a flag at a drift of another kind is wrong",
        examples=[(19, 29), {"rotate": (19, 29)}],
    )
    first_round: CountOrZero = Field(0, description="first round whose decisions are scored")
    last_round: CountOrZero | None = Field(
        None, description="last round whose decisions are scored; the last of the run, if omitted"
    )
    tolerance: CountOrZero = Field(
        10, description="rounds after its onset up to which a flag finds a drift; a later one is false"
    )

    @model_validator(mode="after")
    def _ranges_have_decisions(self) -> Detection:
        first, last = self.first_round, self.last_round
        if last is not None and last < first:
            raise ValueError(f"last_round = {last}: must be at least first_round = {first}")
        ranges: Mapping[str, tuple[int, int]] = {}
        if not self.positive:
            raise ValueError("positive = {}: no decision could be positive; name a kind of drift")
        if isinstance(self.positive, tuple):
            ranges = {"positive": self.positive}
        elif isinstance(self.positive, Mapping):
            ranges = {f"positive.{kind}": rounds for kind, rounds in self.positive.items()}
        for key, (begin, end) in ranges.items():
            if end < begin:
                raise ValueError(f"{key} = [{begin}, {end}]: the last round is before the first")
            if begin > (end if last is None else last) or end < first:
                raise ValueError(
                    f"{key} = [{begin}, {end}]: none of these rounds is scored; those are from {first} to "
                    f"{'the last' if last is None else last}"
                )
        return self

    def check(self, rounds: int | None, kinds: Collection[str]) -> None:
        """Reject rounds that a run does not have, and kinds of drift that its trace does not have.

        Args:
            rounds: The rounds of the run; None if it is not known how many there will be.
            kinds: The kinds of drift of its trace.

        Raises:
            ConfigurationError: One line with the key, the value and the rule.
        """
        begins = {"first_round": self.first_round, "last_round": self.last_round}
        if isinstance(self.positive, tuple):
            begins["positive"] = self.positive[0]
        elif isinstance(self.positive, Mapping):
            begins |= {f"positive.{kind}": begin for kind, (begin, _) in self.positive.items()}
            unknown = sorted(set(self.positive) - set(kinds))
            if unknown:
                raise ConfigurationError(
                    f"detection.positive.{unknown[0]}: the trace has no drift of that kind; it has "
                    f"{', '.join(sorted(kinds)) or 'none'}"
                )
        for key, begin in begins.items():
            if begin is not None and rounds is not None and begin >= rounds:
                raise ConfigurationError(f"detection.{key} = {begin}: must be below round.rounds = {rounds}")


class Choice(Settings):
    """How a setting was chosen among several values. It decides no run, and is not recorded."""

    seeds: tuple[Seed, ...] = Field(
        min_length=1, description="seeds on which it was chosen, none of which is among those of the runs"
    )
    grid: tuple[Any, ...] = Field(min_length=1, description="values that were tried, the setting's too")
    by: str = Field(min_length=1, description="what decided, such as mean accuracy over the run")
    edge: str | None = Field(
        None,
        min_length=1,
        description="why no further values were tried, if it is the least or the largest of grid",
        examples=["larger rates diverge"],
    )

    def problem(self, value: Any, seeds: Collection[int]) -> str:
        """What is wrong with it for a setting of that value, in runs of these seeds; empty if nothing is."""
        grid, reported = ", ".join(map(str, self.grid)), {*self.seeds} & {*seeds}
        if value is None:
            return "no setting of that name has a value; name it as --set does, as in training.learning_rate"
        if value not in self.grid:
            return f"the setting is {value!r}, which is not one of its grid ({grid}); say how it was chosen"
        if reported:
            return f"seed {min(reported)} is among the seeds of the runs; run others than it was chosen on"
        are_numbers = all(type(tried) in (int, float) for tried in self.grid)
        at_edge = are_numbers and value in (min(self.grid), max(self.grid))
        if at_edge == (self.edge is not None):
            return ""
        remedy = "try further values, or say in edge why not" if at_edge else "leave edge out"
        return f"{value!r} is at {'the' if at_edge else 'no'} edge of its grid ({grid}); {remedy}"


def _ascending(values: tuple[float, ...]) -> tuple[float, ...]:
    """The values, ascending; ValueError unless they are different."""
    if len(set(values)) < len(values):
        raise ValueError(f"{list(values)!r}: values that are tried must be different")
    return tuple(sorted(values))


Tried = Annotated[tuple[Any, ...], Field(min_length=1, max_length=MOST_TRIED)]
TriedRates = Annotated[
    tuple[PositiveFactor, ...],
    Field(min_length=1, max_length=MOST_TRIED),
    AfterValidator(_ascending),
]


class Tune(Settings):
    """What `driftscale tune` tries of every arm. It decides no run, and is not recorded."""

    learning_rate: TriedRates = Field(
        description="values of training.learning_rate that are tried, each with each value of an arm's `tune`"
    )
    uses: dict[str, dict[str, Tried]] = Field(
        default_factory=dict,
        description="by kind of adaptation in `evaluate_with`, values of its settings: each combination is a "
        "use of the same training",
        examples=[{"tuned": {"local_steps": [5, 20], "learning_rate": [0.02, 0.1]}}],
    )


def _at_thresholds(name: str, detector: Any) -> dict[str, Any]:
    """The table of a detector by its name; of one with `thresholds` a table at each, named `at_threshold`."""
    kind = detector.get("kind") if isinstance(detector, Mapping) else None
    if not isinstance(kind, str) or kind not in DETECTORS or THRESHOLDS not in detector:
        return {name: detector}
    settings, values = {**detector}, detector[THRESHOLDS]
    del settings[THRESHOLDS]
    key = DETECTORS.find(kind, f"detectors.{name}").threshold
    if key is None:
        having = ", ".join(known for known in DETECTORS.ours() if DETECTORS.find(known).threshold)
        raise ValueError(f"{name}.{THRESHOLDS}: {kind!r} has no threshold; leave it out, or take {having}")
    are_numbers = isinstance(values, list | tuple) and all(is_threshold(value) for value in values)
    if not are_numbers or not len({*values}) == len(values) > 1 or key in settings:
        rule = f"must be two different numbers or more, in the place of {key}, which is left out"
        raise ValueError(f"{name}.{THRESHOLDS} = {values!r}: {rule}")
    return {at_threshold(name, value): {**settings, key: value} for value in values}


class PartsRow(Settings):
    """The parts that make up a method."""

    clusterer: Annotated[Chosen[Clusterer], ChoiceOf(CLUSTERERS)] = Field(
        "single", validate_default=True, description="which clients share which models"
    )
    representation: Annotated[Chosen[Representation], ChoiceOf(REPRESENTATIONS)] = Field(
        "label", validate_default=True, description="what clients report of their data, if a part needs it"
    )
    detectors: dict[str, Annotated[Chosen[Detector], ChoiceOf(DETECTORS)]] = Field(
        default_factory=lambda: {"changed": "changed"},
        validate_default=True,
        description="by name: which clients drifted, and report it; `thresholds` in the place of the "
        "threshold of one, as { kind = 'ddm', thresholds = [2, 3] }, makes ddm@2 and ddm@3 of it, which "
        "`driftscale detection` compares with others",
    )
    selector: Annotated[Chosen[Selector], ChoiceOf(SELECTORS)] = Field(
        "random", validate_default=True, description="which candidates take part in a round"
    )
    memory: Annotated[Chosen[Memory], ChoiceOf(MEMORIES)] = Field(
        "held", validate_default=True, description="which samples a client trains each model on"
    )
    solver: Annotated[
        tuple[Annotated[Chosen[Any], ChoiceOf(RULES)], ...], BeforeValidator(alone_is_a_list)
    ] = Field(
        ("sgd",),
        validate_default=True,
        description="what a local step does: a rule, or a chain of rules in their order",
    )
    schedules: Annotated[
        tuple[Annotated[Chosen[Schedule], ChoiceOf(SCHEDULES)], ...],
        BeforeValidator(alone_is_a_list),
    ] = Field(
        (), description="what sets learning rate, steps and batch size of each task; no two set the same one"
    )
    aggregator: Annotated[Chosen[Aggregator], ChoiceOf(AGGREGATORS)] = Field(
        "fedavg", validate_default=True, description="how updates become new models"
    )
    pacing: Annotated[Chosen[Pacing], ChoiceOf(PACINGS)] = Field(
        "sync", validate_default=True, description="when visits are opened and abandoned, and a round closes"
    )

    adaptation: Annotated[Chosen[Adaptation], ChoiceOf(ADAPTATIONS)] = Field(
        "none", validate_default=True, description="how a client uses the models that serve it"
    )

    @field_validator("detectors", mode="before")
    @classmethod
    def _detectors_have_names(cls, detectors: Any) -> Any:
        if isinstance(detectors, str) or (isinstance(detectors, Mapping) and "kind" in detectors):
            kind = detectors if isinstance(detectors, str) else detectors["kind"]
            raise ValueError(
                f"must be a table of detectors by names of your own, as in {{ mine = {kind!r} }}"
            )
        found: dict[str, Any] = {}
        for name, detector in detectors.items() if isinstance(detectors, Mapping) else ():
            if not 0 < len(str(name)) <= MOST_NAME_BYTES:
                raise ValueError(f"{str(name)[:20]!r}: a name must have 1 to {MOST_NAME_BYTES} letters")
            those = _at_thresholds(name, detector)
            if twice := found.keys() & those.keys():
                raise ValueError(f"two are named {min(twice)!r}; name one of them otherwise")
            found |= those
        return found if isinstance(detectors, Mapping) else detectors

    @field_validator("representation")
    @classmethod
    def _reference_model_is_valid(
        cls, chosen: Chosen[Representation], info: ValidationInfo
    ) -> Chosen[Representation]:
        return _with_valid_model(chosen, info)


class Arm(PartsRow):
    """A method: its name, its row of parts, and the settings of `[training]` that it overrides."""

    name: str = Field(
        max_length=MOST_NAME_BYTES,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]*(\.[0-9][A-Za-z0-9_+-]*)*$",
        description="name of the arm, and of its folder in the run directory",
    )
    training: Training = Field(
        {}, validate_default=True, description="settings of [training] that this arm overrides"
    )
    evaluate_with: tuple[Any, ...] | dict[str, Any] | None = Field(
        None,
        exclude=True,
        description="several uses of one training, as arms that differ in their adaptation alone: a list of "
        "adaptations, as ['none', 'prior', 'tuned'] for the arms NAME, NAME+prior and NAME+tuned, or a table "
        "of them by names of arms. Runs of a seed that train alike are trained once, so written or not",
        examples=[["none", "prior", "tuned"]],
    )
    baseline: StrictBool = Field(
        False,
        description="whether it is one of the arms without clusters, whose best the others are compared "
        "with; its clusterer must be single",
    )
    tune: dict[str, Tried] = Field(
        {},
        max_length=1,
        exclude=True,
        description="its one named number or other setting, by dotted key below it, and the values that "
        "`driftscale tune` tries with each learning rate. It decides no run",
        examples=[{"clusterer.num_models": [4, 8, 16]}],
    )

    @field_validator("evaluate_with", mode="plain")
    @classmethod
    def _is_expanded(cls, uses: Any) -> Any:
        if not isinstance(uses, UseOf):
            raise ValueError("is read with its file, before options are applied: write it there")
        return uses

    @field_validator("baseline")
    @classmethod
    def _baseline_has_no_clusters(cls, baseline: bool, info: ValidationInfo) -> bool:
        clusterer = info.data.get("clusterer")
        if baseline and clusterer is not None and clusterer.kind != WITHOUT_CLUSTERS:
            raise ValueError(
                f"a baseline has no clusters: its clusterer must be {WITHOUT_CLUSTERS}, not {clusterer.kind}"
            )
        return baseline

    def reference_model(self, settings: ReferenceSettings) -> Chosen[Any]:
        """The model that `settings` of a representation name; the arm's own if they name none."""
        if settings.model is None:
            return self.training.model
        return ReferenceModel.model_validate({"model": settings.model}).model


class Experiment(Settings):
    """The whole configuration of an experiment.

    `[parts]` gives the parts of every arm that does not name its own. The table `training` of an arm
    overrides `[training]` key by key.
    """

    name: str = Field(
        max_length=MOST_NAME_BYTES,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+=,-]*$",
        description="name of the experiment",
    )
    extends: str | tuple[str, ...] = Field(
        (),
        exclude=True,
        description="what it builds on: a configuration or several, each the path of a file, from this one "
        "on, or the name of a shipped one. Tables are merged key by key and arms by name; other values, and "
        "parts of another kind, are replaced; later ones win",
        examples=["digits"],
    )
    arms: str | tuple[str, ...] = Field(
        (),
        exclude=True,
        description="names of the arms to keep, inherited or own, in this order; if omitted, all",
        examples=[["global", "fielding"]],
    )
    seeds: tuple[Seed, ...] = Field(
        (0, 1, 2, 3, 4), min_length=1, description="every arm is run once with each of these seeds"
    )
    trace: Annotated[Chosen[TraceSource], ChoiceOf(SOURCES, key="source")] = Field(
        description="which data reaches which client, and when"
    )
    devices: Devices = Field(Devices(), description="how fast clients are, and when they are online")
    faults: FaultSettings = Field(FaultSettings(), description="faults, the same in all arms")
    training: Training = Field(
        {}, validate_default=True, description="what a participant does, unless an arm overrides it"
    )
    round: Round = Field(description="how many rounds there are, their size, and when they are evaluated")
    executor: ExecutorSettings = Field(ExecutorSettings(), description="how training is carried out")
    checkpoint: Checkpoint = Field(Checkpoint(), description="when an unfinished run is stored")
    output: Output = Field(Output(), description="what a run leaves besides its log")
    report: Report = Field(Report(), description="what is compared in the results")
    detection: Detection | None = Field(None, description="how detectors are scored against the truth")
    atlas: AtlasChoice | None = Field(None, description="what was chosen for a column of `driftscale atlas`")
    tune: Tune | None = Field(
        None, exclude=True, description="what `driftscale tune` tries. It decides no run"
    )
    chosen: dict[str, Choice] = Field(
        default_factory=dict,
        exclude=True,
        description="how settings that were searched were chosen, by dotted key in quotes, in the file as it "
        "stands: options leave it out, and what extends the file does not inherit it. It decides no run",
    )
    parts: PartsRow = Field(
        {}, validate_default=True, exclude=True, description="parts of every arm that does not name its own"
    )
    arm: tuple[Arm, ...] = Field(min_length=1, description="the methods that are compared")

    @model_validator(mode="before")
    @classmethod
    def _complete_arms(cls, values: Any) -> Any:
        """Fill in the parts and the training settings that an arm does not name."""
        if not isinstance(values, Mapping) or not isinstance(values.get("arm"), list | tuple):
            return values
        parts, training = values.get("parts", {}), values.get("training", {})
        if not isinstance(parts, Mapping) or not set(parts) <= set(PartsRow.model_fields):
            parts = {}  # the validation of `parts` reports what is wrong
        return {**values, "arm": [_complete_arm(arm, parts, training) for arm in values["arm"]]}

    @field_validator("extends", "arms")
    @classmethod
    def _is_of_a_file(cls, value: Any) -> Any:
        raise ValueError(
            "is read with its file, before options are applied: write it there (--arms plays some arms)"
        )

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("every seed may be given only once")
        return seeds

    @field_validator("arm")
    @classmethod
    def _names_differ(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        names = [arm.name for arm in arms]
        if len(set(names)) < len(names):
            raise ValueError(f"every arm needs a different name; these are {', '.join(names)}")
        return arms

    @model_validator(mode="after")
    def _refuse_too_many_runs(self) -> Experiment:
        refuse_too_many_runs(len(self.arm), len(self.seeds), len(self.report.targets))
        return self

    @model_validator(mode="after")
    def _published_arms_exist(self) -> Experiment:
        names = dict.fromkeys(arm.name for arm in self.arm)
        for figure, values in self.report.published or ():
            for name in values:
                if name not in names:
                    raise ValueError(
                        f"report.published.{figure}: no arm is named {name!r}; arms: {', '.join(names)}"
                    )
        return self

    @model_validator(mode="after")
    def _has_one_objective(self) -> Experiment:
        for arm in self.arm:
            if arm.training.objective != self.training.objective:
                raise ValueError(
                    f"arm {arm.name!r}: training.objective: arms are compared by one objective; set it in "
                    f"[training] alone"
                )
        return self

    @model_validator(mode="after")
    def _an_arm_is_no_baseline(self) -> Experiment:
        names, others = ([arm.name for arm in self.arm], [arm.name for arm in self.arm if not arm.baseline])
        if not others:
            raise ValueError(
                f"arm.baseline: every arm is a baseline ({', '.join(names)}); at least one must not be, to "
                f"be compared with them"
            )
        headline = self.report.headline
        if headline is not None and headline not in others:
            problem = "is a baseline" if headline in names else "names no arm"
            raise ValueError(f"report.headline = {headline!r}: {problem}; choices: {', '.join(others)}")
        return self

    @model_validator(mode="after")
    def _names_of_the_atlas_are_arms(self) -> Experiment:
        if self.atlas is not None and (problem := self.atlas.problem([arm.name for arm in self.arm])):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _are_as_chosen(self, info: ValidationInfo) -> Experiment:
        if not self.chosen or info.context == FIRST_LOOK:  # which lacks settings of rules and models
            return self
        table = {**self.resolved(), "parts": self.parts.model_dump(mode="json")}
        for key, choice in self.chosen.items():
            if problem := choice.problem(value_at(table, key.split(".")), self.seeds):
                raise ValueError(f"chosen.{key}: {problem}")
        return self

    @model_validator(mode="after")
    def _first_is_logged(self) -> Experiment:
        first = self.report.first
        if first is None:
            return self
        from experiments.results.figures.first import first_shown  # draws nothing, but imports all that does

        try:
            needs = first_shown(first).needs
        except InputError as error:
            raise ValueError(str(error)) from error
        is_logged = {DETECTION: self.detection is not None, "": True}
        option = needs.removeprefix("round.")
        if not is_logged.get(needs, getattr(self.round, option, False)):
            how = "add a table [detection]" if needs == DETECTION else f"set {needs} = true"
            raise ValueError(f"report.first = {first!r}: the runs do not log what it shows; {how}")
        return self

    def find_arm(self, name: str) -> Arm:
        """The arm with that name, which must exist."""
        return next(arm for arm in self.arm if arm.name == name)

    def resolved(self) -> dict[str, Any]:
        """The configuration as a TOML table with every default.

        Settings that are None are left out, and so are `baseline` where it is false, the rounds between
        evaluations where these follow virtual time, and the local steps where visits are of epochs.
        """
        without_nulls = _without_nulls(self.model_dump(mode="json", by_alias=True))
        assert isinstance(without_nulls, dict)
        if self.round.evaluate_every_s is not None:
            del without_nulls["round"]["evaluate_every"]
        for arm in without_nulls["arm"]:
            if not arm["baseline"]:
                del arm["baseline"]
        for table in (without_nulls, *without_nulls["arm"]):
            if "local_epochs" in table["training"]:
                del table["training"]["local_steps"]
            else:
                del table["training"]["last"]
        return without_nulls

    def to_toml(self) -> str:
        """The text of the `experiment.toml` of a run directory, with every default written out.

        Raises:
            ConfigurationError: The file could not be read back: it has too many runs, or too many bytes.
        """
        try:
            refuse_too_many_runs(len(self.arm), len(self.seeds), len(self.report.targets))
        except ValueError as error:
            raise ConfigurationError(f"together with the runs that exist already, {error}") from error
        import tomli_w  # which a mistake does not need

        text = tomli_w.dumps(self.resolved())
        if len(text.encode()) > MOST_EXPERIMENT_BYTES:
            raise ConfigurationError(
                f"with every default written out for each of {len(self.arm)} arms, the configuration has "
                f"{len(text.encode()):,} bytes, and experiment.toml at most {MOST_EXPERIMENT_BYTES:,}; "
                f"split the arms into several experiments"
            )
        return text


def parse_experiment(table: Mapping[str, Any], where: str, context: str | None = None) -> Experiment:
    """The Experiment that `table` describes.

    Args:
        table: The tables of a configuration, as read from TOML.
        where: Names the configuration in errors, such as its file.
        context: FIRST_LOOK leaves out the settings of rules and models, which need torch.

    Raises:
        ConfigurationError: One line with `where`, the key, the value and the rule that is broken; its `more`
            has the other mistakes.
    """
    try:
        return Experiment.model_validate(table, context=context)
    except ValidationError as error:
        from experiments.remedies.mistakes import mistakes  # which nothing else needs

        first, *more = mistakes(error, table, Experiment)
        refusal = ConfigurationError(f"{where}: {first}")
        refusal.more = more
        raise refusal from error


def _complete_arm(arm: Any, parts: Mapping[str, Any], training: Any) -> Any:
    """The table of an arm, completed by the shared `parts` and `training`.

    A value that is not a table stays as it is; its validation reports it.
    """
    if not isinstance(arm, Mapping):
        return arm
    completed = arm.get("training", {})
    if isinstance(training, Mapping) and isinstance(completed, Mapping):
        completed = {**beside("training", training, completed), **completed}
    return {**parts, **arm, "training": completed}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
