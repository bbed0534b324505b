"""Contracts of trace sources and concept sets: the samples that they draw, and when these arrive."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import EmulatorError
from emulator.messages import SampleRanges
from emulator.ports import Split
from emulator.seeding import RandomStreams
from experiments.contracts.generators import and_no_global_generator
from experiments.sameness import left_alone, same
from traces.arrivals import SPLITS, STEPS_AHEAD, Arrivals
from traces.concepts import ConceptSamples, ConceptSet
from traces.images import ImageSet
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace, TraceStream

Locate = Callable[[str], Path]

SEED = 7


@and_no_global_generator
def check_trace_source(make: Callable[[], TraceSource], rounds: int = 20, locate: Locate = Path) -> None:
    """Check a trace source by the trace that it builds.

    * The trace is a function of settings and seed; no file remains in the folder for large traces.
    * Every round has samples to train and to test on; features are finite float32 and do not depend on what
      else is read; labels are in range; label histograms match the samples that clients hold.
    * No image is in both splits. In a trace that tests, then trains, the test samples of a step are instead
      the training arrivals of the next, unless they are the test arrivals of the next. In any other trace
      that knows its concepts, a client whose concept changes is one whose training samples changed.
    * Onsets, if they are known, are of clients of the trace, at data steps up to the last.
    * Reference rows are training samples that clients hold at step 0, at most so many of each label.
    * Files are found by `locate` alone; a missing file raises an EmulatorError of one line.

    Args:
        make: Makes a fresh trace source.
        rounds: The number of rounds that the trace must cover.
        locate: Maps a path in the settings to the file.

    Raises:
        AssertionError: The source or its trace breaks a rule, which the message names.
    """
    requested: list[str] = []

    def located(path: str) -> Path:
        requested.append(path)
        return locate(path)

    source = make()
    trace = source.build(TraceContext(rounds, RandomStreams(SEED), located))
    assert isinstance(trace, Trace), f"builds a {type(trace).__name__}, not a Trace"
    digest = trace.digest()
    with tempfile.TemporaryDirectory() as folder:
        for again in (source, make()):
            built = again.build(TraceContext(rounds, RandomStreams(SEED), locate, Path(folder)))
            assert built.digest() == digest, "two traces of the same seed differ"
            left = sorted(path.name for path in Path(folder).iterdir())
            assert not left, f"leaves {left} in the folder for large traces"
    _check_trace(trace)
    _check_stream(trace, rounds)
    if requested:
        _check_missing_files(lambda nowhere: make().build(TraceContext(rounds, RandomStreams(SEED), nowhere)))


@and_no_global_generator
def check_concepts(make: Callable[[], ConceptSet], samples: int = 5, locate: Locate = Path) -> None:
    """Check a concept set by the samples that it draws.

    * It draws `samples` samples for every cell of a pattern, each an image of its pool with a label that the
      pool has; pixels are uint8 or finite float32.
    * Equal streams draw the same; a batch does not depend on later ones.
    * It does not write to its arguments.
    * Files are found by `locate` alone; a missing file raises an EmulatorError of one line.

    Args:
        make: Makes a fresh concept set.
        samples: The number of samples to draw for each cell.
        locate: Maps a path in the settings to the file.

    Raises:
        AssertionError: The concept set breaks a rule, which the message names.
    """
    requested: list[str] = []

    def located(path: str) -> Path:
        requested.append(path)
        return locate(path)

    concepts = make()
    count = concepts.num_concepts
    assert isinstance(count, int), f"num_concepts = {count!r}: must be an int"
    assert count >= 1, f"num_concepts = {count}: must be at least 1"
    pattern = (np.arange(12).reshape(4, 3) // 2) % count
    with left_alone(pattern):
        drawn = concepts.draw(pattern, samples, RandomStreams(SEED), located)
    _check_drawn(drawn, (*pattern.shape, samples))
    for again in (concepts, make()):
        redrawn = again.draw(pattern, samples, RandomStreams(SEED), locate)
        assert same(_contents(redrawn), _contents(drawn)), "two draws of the same seed differ"
    for concept in range(count):
        _check_drawn(
            make().draw(np.array([[concept]]), samples, RandomStreams(SEED), locate), (1, 1, samples)
        )
    later = pattern.copy()
    later[2:] = (later[2:] + 1) % count
    for same_beginning in (pattern[:2], later):
        redrawn = make().draw(same_beginning, samples, RandomStreams(SEED), locate)
        assert same(_contents(redrawn, 2), _contents(drawn, 2)), "a batch depends on later ones"
    if requested:
        _check_missing_files(lambda nowhere: make().draw(pattern, samples, RandomStreams(SEED), nowhere))


def _check_missing_files(read: Callable[[Locate], object]) -> None:
    """Check that `read`, with a `locate` that leads to missing files, raises an EmulatorError of one line."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            read(lambda path: Path(folder) / path)
        except EmulatorError as error:
            complaint = str(error)
        except Exception as error:
            raise AssertionError(
                f"a missing file raises {type(error).__name__}: {error}; must be a DataFileError that names "
                f"the file, as the readers in emulator.storage raise"
            ) from error
        else:
            raise AssertionError("it finds its files without `locate`")
    assert "\n" not in complaint, f"the error of a missing file has more than one line: {complaint}"


# -- a trace -----------------------------------------------------------------------------------------------


def _check_trace(trace: Trace) -> None:
    assert len(trace.label_names) <= trace.num_labels, "more label names than labels"
    assert trace.sample_shape, "samples must be arrays: sample_shape = ()"
    for name in ("rounds_per_step", "retain_steps", "test_retain_steps"):
        assert getattr(trace, name) >= 1, f"{name} = {getattr(trace, name)}: must be at least 1"
    rows = np.linspace(0, len(trace) - 1, num=min(len(trace), 500)).astype(np.int64)
    features = trace.features(rows)
    assert features.shape == (len(rows), *trace.sample_shape), f"features have shape {features.shape}"
    assert features.dtype == np.float32, f"features are {features.dtype}, not float32"
    assert np.isfinite(features).all(), "features must be finite"
    assert same(trace.features(rows[::-1])[::-1], features), "features depend on what else is read"
    columns = trace.columns()
    labels = trace.labels(np.arange(len(trace)))
    assert ((labels >= 0) & (labels < trace.num_labels)).all(), "labels must be 0 to num_labels - 1"
    _check_reference_rows(trace, columns)
    if trace.onsets is not None and len(trace.onsets):
        last_step = trace.last_step - STEPS_AHEAD[trace.test_on]
        assert trace.onsets.step.max() <= last_step, f"an onset is after the last data step, {last_step}"
        assert trace.onsets.client.max() < trace.num_clients, "an onset is of a client that there is not"
    if trace.concepts is not None:
        _check_concepts_of(trace, trace.concepts)
    if trace.concepts is None or not _trains_on_tests(trace):
        train, test = (np.unique(columns.image[columns.split == split]) for split in range(len(SPLITS)))
        both = np.intersect1d(train, test)
        assert len(both) == 0, f"{len(both)} images are in both the training and the test split"


def _trains_on_tests(trace: Trace) -> bool:
    """Whether the test samples of a step must be the training arrivals of the next; it knows its concepts."""
    return trace.test_then_train and trace.test_on == "present"


def _check_reference_rows(trace: Trace, columns: Arrivals) -> None:
    rows = trace.reference_rows(2)
    assert same(trace.reference_rows(2), rows), "reference rows differ from call to call"
    assert (np.diff(rows) > 0).all(), "reference rows must be distinct and ascending"
    of_train = columns.split[rows] == SPLITS.index("train")
    assert (of_train & (columns.arrival[rows] <= 0)).all(), (
        "reference rows must be training samples that clients hold at step 0"
    )
    held = trace.held(np.arange(trace.num_clients), "train", 0)
    labels = np.concatenate([trace.labels(held.rows(client)) for client in range(trace.num_clients)])
    expected = np.minimum(np.bincount(labels, minlength=trace.num_labels), 2)
    assert same(np.bincount(trace.labels(rows), minlength=trace.num_labels), expected), (
        "reference rows must have two samples of each label, or all there are"
    )


def _check_concepts_of(trace: Trace, concepts: Ints) -> None:
    steps = trace.last_step + 1 - STEPS_AHEAD[trace.test_on]
    expected = (steps + 1, trace.num_clients)
    assert concepts.shape == expected, (
        f"concepts have shape {concepts.shape}, not (steps + 1, clients) {expected}"
    )
    assert concepts.dtype == np.int64, f"concepts are {concepts.dtype}, not int64"
    assert (concepts >= 0).all(), "concepts must be numbered from 0"
    of_tests = trace.test_concepts
    if of_tests is not None:
        assert of_tests.shape == (steps, trace.num_clients), (
            f"test_concepts have shape {of_tests.shape}, not (steps, clients) {(steps, trace.num_clients)}"
        )
        assert of_tests.dtype == np.int64, f"test_concepts are {of_tests.dtype}, not int64"
        assert (of_tests >= 0).all(), "test_concepts must be numbered from 0"
    everyone = np.arange(trace.num_clients)
    if not _trains_on_tests(trace):
        _check_changes_of_concept(trace, concepts)
        return
    for step in range(trace.last_step):
        tested = trace.held(everyone, "test", step)
        trained = trace.arrived(everyone, step + 1, step + 1, step + 1)
        for client in range(trace.num_clients):
            assert _samples(trace, tested, client) == _samples(trace, trained, client), (
                f"in a trace that tests, then trains, the test samples of a step must be the training "
                f"samples that arrive in the next; those of client {client} at step {step} are not"
            )


def _check_changes_of_concept(trace: Trace, concepts: Ints) -> None:
    stream = TraceStream(trace)
    stream.advance_to_round(0)
    for step in range(1, trace.last_step + 1):
        changed = stream.advance_to_round(step * trace.rounds_per_step)
        unseen = np.setdiff1d(np.flatnonzero(concepts[step] != concepts[step - 1]), changed)
        assert len(unseen) == 0, (
            f"at step {step} the concept of client {unseen[:1]} changes, and its training samples do not"
        )
    assert trace.test_then_train or same(concepts[-1], concepts[-2]), (
        "in a trace whose test samples are of the present concept, the last row of concepts must repeat the "
        "one before"
    )


def _samples(trace: Trace, ranges: SampleRanges, client: int) -> list[tuple[bytes, int]]:
    """The features and label of each of the client's samples, sorted: their order does not matter."""
    rows = ranges.rows(client)
    features, labels = trace.features(rows), trace.labels(rows)
    return sorted((sample.tobytes(), int(label)) for sample, label in zip(features, labels, strict=True))


def _check_stream(trace: Trace, rounds: int) -> None:
    """Check that every data step has samples of both splits, and that histograms match the samples held."""
    stream, everyone = TraceStream(trace), np.arange(trace.num_clients)
    for round_ in range(0, rounds, trace.rounds_per_step):
        stream.advance_to_round(round_)
        splits: tuple[Split, ...] = SPLITS
        for split in splits:
            held = stream.held(everyone, split).counts()
            assert held.any(), (
                f"in round {round_} no client has a {split} sample: the trace ends before the run"
            )
    last = stream.held(everyone, "train")
    for client in range(min(trace.num_clients, 5)):
        labels = trace.labels(last.rows(client))
        counts = np.bincount(labels, minlength=trace.num_labels)
        shares = counts / max(counts.sum(), 1)
        assert np.allclose(stream.label_histograms(everyone[[client]])[0], shares, rtol=0, atol=1e-12), (
            f"the label histogram of client {client} does not match the samples that it holds"
        )


# -- what a concept set draws ------------------------------------------------------------------------------


def _check_drawn(drawn: ConceptSamples, shape: tuple[int, ...]) -> None:
    pool = drawn.pool
    _check_pool(pool)
    for name, values, limit in (
        ("image", drawn.image, len(pool.pixels)),
        ("label", drawn.label, pool.num_labels),
    ):
        assert values.shape == shape, (
            f"{name} has shape {values.shape}, not (batches, clients, samples) {shape}"
        )
        assert values.dtype == np.int64, f"{name} is {values.dtype}, not int64"
        assert ((values >= 0) & (values < limit)).all(), f"{name} must be 0 to {limit - 1}"


def _check_pool(pool: ImageSet) -> None:
    assert isinstance(pool, ImageSet), f"the pool is a {type(pool).__name__}, not an ImageSet"
    assert pool.pixels.dtype in (np.uint8, np.float32), (
        f"pixels are {pool.pixels.dtype}: must be uint8 or float32"
    )
    assert pool.shape, "samples must be arrays: pixels have only the axis of images"
    assert pool.labels.shape == (len(pool.pixels),), "the pool must have a label for each of its images"
    assert ((pool.labels >= 0) & (pool.labels < pool.num_labels)).all(), "labels must be 0 to num_labels - 1"
    assert len(pool.label_names) <= pool.num_labels, "more label names than labels"
    assert np.isfinite(pool.features(np.arange(len(pool.pixels)))).all(), "features must be finite"


def _contents(drawn: ConceptSamples, batches: int | None = None) -> list[object]:
    """Features and labels of the first `batches`, regardless of the positions of samples in the pool."""
    return [drawn.pool.features(drawn.image[:batches].ravel()), drawn.label[:batches]]
