"""Every registered trace source and concept set passes its contract, and the contracts refuse breaches."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from emulator.plugins import NoSettings
from emulator.seeding import RandomStreams
from experiments import contracts
from tests.experiments.small import REPLAY, write_idx_folder, write_label_trace
from tests.fakes import NOTHING
from tests.traces.tiny import Row, daily_rows, some_images, trace_of, write_trace_folder
from traces.concepts import CONCEPT_SETS, ConceptSamples, ConceptSet
from traces.concepts.points import Sine
from traces.images import ImageSet
from traces.sources import SOURCES, TraceContext, TraceSource
from traces.tables.sorted import SortedTable
from traces.trace import Trace

STREAM = {"rounds_per_step": 2, "retain_rounds": 4, "samples_per_step": 6, "test_samples_per_step": 4}
PATTERN = {"pattern": ["000", "010", "011"], "rounds_per_step": 2, "samples_per_step": 5}
REPLAYED = {key: value for key, value in REPLAY.items() if key != "source"}
OBSERVED = {key: value for key, value in REPLAYED.items() if "samples_per_step" not in key}
OBSERVED["samples"] = "observed"
BUCKETS = {"kind": "buckets", "labels_per_client": 3, "buckets": 2}
SWAP = {"what": "own_swap", "on": "held", "clients": {"share": 0.5}, "every": 2}
HELD = {"what": "xor", "on": "held", "at_step": 1}
OF_TRAINING = {"what": {"noise": 0.5}, "on": "arrivals", "at_step": 1, "splits": ["train"]}
SMALL_SOURCES = [
    ("concepts", {"concepts": "sine", **PATTERN, "changes": [{**HELD, "on": "arrivals"}]}),
    ("concepts", {"concepts": {"kind": "sea", "noise": 0.2}, **PATTERN, "data_seed": "run"}),
    ("concepts", {"concepts": {"kind": "label_swaps", "folder": "images", "swaps": [[0, 1]]}, **PATTERN}),
    ("digits", {"clients": 6, **STREAM, "noise": 0.5, "changes": [HELD, OF_TRAINING]}),
    ("digits", {"clients": 6, **STREAM, "drift": {"kind": "label_mix", "labels_per_mix": 1, "mixes": 2}}),
    (
        "idx",
        {
            "clients": 6,
            **STREAM,
            "folder": "images",
            "drift": {"kind": "none", "mixes": 2, "labels_per_mix": 1},
        },
    ),
    ("idx", {"clients": 6, **STREAM, "folder": "images", "drift": BUCKETS, "shared": "rare_half"}),
    ("digits", {"clients": 6, **STREAM, "static": True, "drift": BUCKETS | {"at_start": 2}}),
    ("digits", {"clients": 6, **STREAM, "noise": 0.5, "static": True, "shared": "two", "changes": [SWAP]}),
    ("file", {"folder": "own", "rounds_per_step": 2, "retain_rounds": 2, "test_share": 0.25}),
    (
        "file",
        {
            "folder": "concepts",
            "rounds_per_step": 2,
            "retain_rounds": 4,
            "test_on": "next",
            "changes": [HELD],
        },
    ),
    (
        "digits",
        {"clients": 6, "noise": 0.5, "partition": "dirichlet", "rounds_per_step": 2, "changes": [SWAP]},
    ),
    ("idx", {"clients": 6, "folder": "images", "partition": "quarters"}),
    ("idx", {"clients": 6, "folder": "images", "partition": "iid", "split": [0.6, 0.2]}),
    ("digits", {"clients": 6, **STREAM, "split": [0.5, 0.25], "digits_per_image": 2}),
    ("digits", {"clients": 6, "partition": "iid", "starts_with": [0.1, 0.4], "rounds_per_step": 2}),
    (
        "digits",
        {
            "clients": 6,
            "partition": "iid",
            "starts_with": [0.1, 0.4],
            "rounds_per_step": 2,
            "test_on": "next",
        },
    ),
    ("label_replay", REPLAYED),
    ("label_replay", {**REPLAYED, "absent": "leave", "test_on": "next", "changes": [HELD]}),
    ("label_replay", {**OBSERVED, "clients_per_group": 1}),
    ("label_replay", {**OBSERVED, "absent": "leave", "test_share": 0.5}),
    ("markov_text", {"clients": 6, **STREAM, "length": 9, "texts": 20, "changes": [HELD]}),
    ("markov_text", {"clients": 3, "length": 9, "texts": 20, "partition": "dirichlet", "data_seed": "run"}),
    ("synthetic", {"clients": 4, "rounds_per_step": 2, "changes": [HELD]}),
    ("synthetic", {"clients": 3, "rounds_per_step": 2, "alpha": 0, "beta": 1, "data_seed": "run"}),
]
SMALL_CONCEPTS = [
    ("circle", {}),
    ("label_subsets", {"folder": "images", "subsets": [[0, 1], [1, 2]]}),
    ("label_subsets", {"folder": "images", "subsets": [[0], [1, 2]], "reuse": True}),
    ("label_swaps", {"folder": "images", "swaps": [[0, 1], [1, 2]]}),
    ("sea", {}),
    ("sea", {"noise": 0.0, "thresholds": [8, 9, 7, 9]}),
    ("sine", {}),
    ("tables", {"files": ["a.csv", "b.csv"]}),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that are named above."""
    folder = tmp_path_factory.mktemp("files")
    write_idx_folder(folder / "images", train=90, test=30)
    write_label_trace(folder / "labels.csv")
    write_trace_folder(folder / "own", daily_rows(clients=6, days=3))
    drifting = daily_rows(clients=4, days=4)
    drifting["concept"] = (drifting["client"] + np.arange(len(drifting["client"])) // (4 * 8)) % 2
    write_trace_folder(folder / "concepts", drifting)
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("x,y\n" + "0.5,0\n0.25,1\n" * 5)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), SMALL_SOURCES)
def test_trace_sources(files: Path, name: str, settings: dict[str, object]) -> None:
    part = SOURCES.find(name)
    settings = part.Settings.model_validate(settings)
    contracts.check_trace_source(lambda: part(settings), rounds=4, locate=files.joinpath)  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "settings"), SMALL_CONCEPTS)
def test_concept_sets(files: Path, name: str, settings: dict[str, object]) -> None:
    part = CONCEPT_SETS.find(name)
    settings = part.Settings.model_validate(settings)
    contracts.check_concepts(lambda: part(settings), locate=files.joinpath)  # type: ignore[call-arg]


def test_every_registered_part_is_checked() -> None:
    assert {name for name, _ in SMALL_SOURCES} == set(SOURCES.names())
    assert {name for name, _ in SMALL_CONCEPTS} == set(CONCEPT_SETS.names())


# -- sources that break a rule -----------------------------------------------------------------------------

ROWS: list[Row] = [
    (client, split, arrival, (client + arrival) % 3)
    for client in (0, 1)
    for split in (0, 1)
    for arrival in (0, 1)
]


class Ready(TraceSource):
    """A source whose trace is `make(context)`."""

    Settings = NoSettings

    def __init__(self, make) -> None:
        self.make = make

    def build(self, context: TraceContext) -> Trace:
        return self.make(context)


def with_images(images: ImageSet) -> Trace:
    return trace_of(ROWS, images=images)


def with_columns(**columns: object) -> Trace:
    """The trace of `ROWS`, whose columns are replaced before they are sorted."""
    columns_before = trace_of(ROWS).columns()
    filled = {
        name: np.broadcast_to(value, len(columns_before.label)).astype(getattr(columns_before, name).dtype)
        for name, value in columns.items()
    }
    table = SortedTable(replace(columns_before, **filled), 2, None)
    return Trace(
        some_images(), table, retain_steps=2, rounds_per_step=1, noise=0.0, generator=np.random.default_rng(0)
    )


def with_concepts(rows: list[Row], concepts: object) -> Trace:
    return trace_of(rows, test_retain_steps=1, retain_steps=9, concepts=concepts)  # type: ignore[arg-type]


# Client 1 receives nothing at step 1.
ONCE: list[Row] = [(client, split, 0, client) for client in (0, 1) for split in (0, 1)] + [(0, 0, 1, 0)]


def of_present_concepts(rows: list[Row], concepts: object) -> Trace:
    trace = with_concepts(rows, concepts)
    trace.test_then_train = False
    return trace


def with_attribute(name: str, value: object) -> Trace:
    trace = trace_of(ROWS)
    setattr(trace, name, value)
    return trace


class Fickle(Trace):
    """Features that depend on how often they were read."""

    reads = 0

    def features(self, rows):
        self.reads += 1
        return super().features(rows) + np.float32(self.reads)


class Double(Trace):
    def features(self, rows):
        return super().features(rows).astype(np.float64)


class Narrow(Trace):
    def features(self, rows):
        return super().features(rows)[:, 1:]


class Silent(SortedTable):
    """Returns no arrivals of training samples."""

    def trained_at(self, step):
        return iter(())


class Unsteady(Trace):
    """Other reference rows at each call."""

    calls = 0

    def reference_rows(self, per_label):
        self.calls += 1
        return super().reference_rows(per_label)[self.calls % 2 :]


class Late(Trace):
    """Reference rows of both splits and all steps."""

    def reference_rows(self, per_label):
        return np.arange(len(self))


class Sparse(Trace):
    def reference_rows(self, per_label):
        return super().reference_rows(1)[:1]


def of_class(kind: type[Trace]) -> Trace:
    trace = trace_of(ROWS)
    trace.__class__ = kind
    return trace


def of_silent_table() -> Trace:
    trace = trace_of(ROWS)
    trace.table.__class__ = Silent
    return trace


# At step 0 the client is tested on label 1, and gets label 0 at step 1.
OTHER_TESTS: list[Row] = [(0, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 0), (0, 1, 1, 0)]


def bad_sources():
    built = count()

    def leaves(context: TraceContext) -> Trace:
        if context.scratch is not None:
            (context.scratch / "left").touch()
        return trace_of(ROWS)

    def by_turns(context: TraceContext) -> Trace:
        return trace_of(ROWS, num_clients=None, noise=float(next(built)))

    def elsewhere(context: TraceContext) -> Trace:
        context.locate("set")
        return trace_of(ROWS)

    def of_a_missing_file(context: TraceContext) -> Trace:
        context.locate("set").read_text()
        return trace_of(ROWS)

    def of_a_folder(context: TraceContext) -> Trace:
        return trace_of(ROWS, noise=0.0 if context.scratch is None else 0.5)

    def drawing(context: TraceContext) -> Trace:
        np.random.random()  # noqa: NPY002
        return trace_of(ROWS)

    images = some_images()
    infinite = replace(images, pixels=np.full_like(images.pixels, np.inf, dtype=np.float32), scale=1.0)
    overnamed = replace(images, label_names=("a", "b", "c", "d"))
    return [
        pytest.param(lambda context: some_images(), "builds a ImageSet", id="no trace"),
        pytest.param(by_turns, "two traces of the same seed differ", id="by turns"),
        pytest.param(of_a_folder, "two traces of the same seed differ", id="by the folder"),
        pytest.param(leaves, "leaves \\['left'\\]", id="leaves a file"),
        pytest.param(drawing, "global generator of numpy", id="draws"),
        pytest.param(elsewhere, "finds its files without `locate`", id="elsewhere"),
        pytest.param(of_a_missing_file, "FileNotFoundError", id="an error of Python's"),
        pytest.param(lambda context: with_images(infinite), "features must be finite", id="infinite"),
        pytest.param(
            lambda context: with_images(some_images(shape=())), "must be arrays", id="numbers for samples"
        ),
        pytest.param(lambda context: of_class(Fickle), "depend on what else is read", id="fickle"),
        pytest.param(lambda context: of_class(Double), "not float32", id="double"),
        pytest.param(lambda context: of_class(Narrow), "features have shape", id="narrow"),
        pytest.param(lambda context: of_silent_table(), "label histogram of client 0", id="silent table"),
        pytest.param(lambda context: with_images(overnamed), "more label names", id="names"),
        pytest.param(
            lambda context: with_attribute("retain_steps", 0), "retain_steps = 0", id="retains nothing"
        ),
        pytest.param(lambda context: with_columns(label=3), "0 to num_labels - 1", id="labels"),
        pytest.param(
            lambda context: with_columns(image=5), "both the training and the test split", id="both"
        ),
        pytest.param(
            lambda context: with_concepts(OTHER_TESTS, [[0], [0], [0]]),
            "client 0 at step 0 are not",
            id="tests",
        ),
        pytest.param(lambda context: with_concepts(ROWS, [[0, 0]]), "concepts have shape", id="few concepts"),
        pytest.param(
            lambda context: with_concepts(ROWS, np.zeros((3, 2), dtype=np.int32)),
            "concepts are int32",
            id="int32",
        ),
        pytest.param(lambda context: with_concepts(ROWS, [[-1, 0]] * 3), "numbered from 0", id="concept -1"),
        pytest.param(
            lambda context: of_present_concepts(ONCE, [[0, 0], [0, 1], [0, 1]]),
            "at step 1 the concept of client .1. changes, and its training samples do not",
            id="concepts alone",
        ),
        pytest.param(
            lambda context: of_present_concepts(ROWS, [[0, 0], [0, 1], [1, 1]]),
            "the last row of concepts must repeat",
            id="last row",
        ),
        pytest.param(lambda context: of_class(Unsteady), "differ from call to call", id="unsteady reference"),
        pytest.param(lambda context: of_class(Late), "that clients hold at step 0", id="late reference"),
        pytest.param(lambda context: of_class(Sparse), "two samples of each label", id="sparse reference"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "complaint"), bad_sources())
def test_sources_that_break_a_rule_are_refused(make, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_trace_source(lambda: Ready(make), rounds=2, locate=lambda path: Path(__file__))


def test_a_trace_whose_clients_come_and_go_is_a_trace() -> None:
    # Client 0 stays, 1 joins at step 2, 2 has left by then, and 3 is away at steps 1 and 2.
    held = {0: range(5), 1: range(2, 5), 2: range(2), 3: (0, 3, 4)}
    rows = [
        (client, split, step, client % 3)
        for client, steps in held.items()
        for split in (0, 1)
        for step in steps
    ]
    trace = trace_of(rows, retain_steps=1)
    contracts.check_trace_source(lambda: Ready(lambda context: trace), rounds=5)


def test_a_trace_that_ends_before_its_run_is_refused() -> None:
    contracts.check_trace_source(lambda: Ready(lambda context: trace_of(ROWS)), rounds=3)
    with pytest.raises(AssertionError, match="in round 3 no client has a train sample"):
        contracts.check_trace_source(lambda: Ready(lambda context: trace_of(ROWS)), rounds=4)


# -- concept sets that break a rule ------------------------------------------------------------------------


class Turned(Sine):
    """Sine, whose samples `turn` changes, given the pattern."""

    def __init__(self, turn) -> None:
        self.turn = turn

    def draw(self, pattern, samples, streams, locate) -> ConceptSamples:
        return self.turn(super().draw(pattern, samples, streams, locate), pattern)


def with_pool(**changes):
    return lambda drawn, pattern: replace(drawn, pool=replace(drawn.pool, **changes))


def wrong_pools():
    def double(drawn, pattern):
        return with_pool(pixels=drawn.pool.pixels.astype(np.float64))(drawn, pattern)

    def infinite(drawn, pattern):
        return with_pool(pixels=np.full_like(drawn.pool.pixels, np.nan))(drawn, pattern)

    def flat(drawn, pattern):
        return with_pool(pixels=drawn.pool.pixels[:, 0])(drawn, pattern)

    def short(drawn, pattern):
        return with_pool(labels=drawn.pool.labels[1:])(drawn, pattern)

    return [
        (lambda drawn, pattern: replace(drawn, pool=None), "the pool is a NoneType"),
        (double, "pixels are float64"),
        (infinite, "features must be finite"),
        (flat, "only the axis of images"),
        (short, "a label for each of its images"),
        (with_pool(num_labels=1), "labels must be 0"),
        (with_pool(label_names=("a", "b", "c")), "more label names"),
    ]


def wrong_draws():
    drawn_before = count()

    def narrow(drawn, pattern):
        return replace(drawn, label=drawn.label.astype(np.int32))

    def few(drawn, pattern):
        return replace(drawn, label=drawn.label[:, :, 1:])

    def strangers(drawn, pattern):
        return replace(drawn, image=drawn.image + 1)

    def unknown(drawn, pattern):
        return replace(drawn, label=drawn.label + 1)

    def moody(drawn, pattern):
        return replace(drawn, label=(drawn.label + next(drawn_before)) % 2)

    def foreseeing(drawn, pattern):
        return replace(drawn, label=(drawn.label + pattern[-1].sum()) % 2)

    def of_the_length(drawn, pattern):
        return replace(drawn, label=1 - drawn.label) if len(pattern) == 2 else drawn

    def painting(drawn, pattern):
        pattern[0] = 0
        pattern[-1, -1] += 1
        return drawn

    def drawing(drawn, pattern):
        np.random.random()  # noqa: NPY002
        return drawn

    return [
        (narrow, "label is int32, not int64"),
        (few, "label has shape"),
        (strangers, "image must be 0 to"),
        (unknown, "label must be 0 to 1"),
        (moody, "two draws of the same seed differ"),
        (foreseeing, "depends on later ones"),
        (of_the_length, "depends on later ones"),
        (painting, "writes to its arguments"),
        (drawing, "global generator of numpy"),
    ]


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [*wrong_pools(), *wrong_draws()],
    ids=lambda value: getattr(value, "__name__", "").strip("<>"),
)
def test_concept_sets_that_break_a_rule_are_refused(turn, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_concepts(lambda: Turned(turn))


@pytest.mark.parametrize(("number", "complaint"), [(0, "num_concepts = 0"), (2.0, "num_concepts = 2.0")])
def test_concept_sets_without_a_valid_number_of_concepts_are_refused(number: object, complaint: str) -> None:
    class Empty(Sine):
        num_concepts = number  # type: ignore[assignment]

    with pytest.raises(AssertionError, match=complaint):
        contracts.check_concepts(lambda: Empty(NOTHING))


class FromFile(ConceptSet):
    """One concept, whose samples `read` reads."""

    Settings = NoSettings
    num_concepts = 1

    def __init__(self, read) -> None:
        self.read = read

    def draw(self, pattern, samples, streams: RandomStreams, locate) -> ConceptSamples:
        self.read(locate("points.csv"))
        return Sine(NOTHING).draw(pattern, samples, streams, locate)


@pytest.mark.parametrize(
    ("read", "complaint"),
    [(lambda path: None, "finds its files without `locate`"), (Path.read_text, "FileNotFoundError")],
    ids=["elsewhere", "an error of Python's"],
)
def test_concept_sets_without_an_error_for_a_missing_file_are_refused(
    tmp_path: Path, read, complaint: str
) -> None:
    (tmp_path / "points.csv").touch()
    with pytest.raises(AssertionError, match=complaint):
        contracts.check_concepts(lambda: FromFile(read), locate=tmp_path.joinpath)
