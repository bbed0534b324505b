"""Images with FedScale's client mapping: Open Images, FEMNIST, and any other of the same layout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.numbers import Count
from emulator.seeding import RandomStreams
from emulator.storage.reading.tally import Tally
from traces.arrivals import SPLITS
from traces.building.images import ImageBuilder, WholeImageSettings
from traces.building.kinds.objects import ranks, refuse_owned
from traces.building.pixels import ImageFiles, place
from traces.building.rows import Coded, Rows, codes, interval_of, samples_of
from traces.building.rules import FILES, LABEL_IDS, Cells, refuse
from traces.building.text_columns import TextColumns, header

MAPPING = "client_data_mapping"
PATHS = ("sample_path", "data_path")
"""The names of the column of files; that of detection tasks differs."""


class MappedFiles(ImageFiles):
    """The files `names` of the mappings of some splits: those of the first one, then those of the others."""

    def __init__(
        self, root: Path, splits: Sequence[str], names: Sequence[Sequence[str]], most_missing: int
    ) -> None:
        """Look where the files of each mapping are; see `_folder`."""
        self._splits = splits
        self._folders = [_folder(root, *own, most_missing) for own in zip(splits, names, strict=True)]
        self._starts = np.cumsum([0, *map(len, names)])
        files = [folder + name for folder, own in zip(self._folders, names, strict=True) for name in own]
        super().__init__(root, files, self._listed_in)

    def check(self, images: Ints) -> None:
        """Raise DataFileError for an image that is not below the folder of its mapping, but below the other.

        NOTE: this takes some four microseconds an image, a hundredth of the time of decoding it or less.
        """
        for image in images.tolist():
            path = f"{self.root}/{self.names[image]}"
            if _exists(path):
                continue
            mapping, row = place(self._starts, image)
            split, folder = self._splits[mapping], self._folders[mapping]
            name = self.names[image].removeprefix(folder)
            other = f"{self.root}/{name}" if folder else f"{self.root}/{split}/{name}"
            if _exists(other):
                raise DataFileError(
                    self.root / MAPPING / f"{split}.csv",
                    f"{other} exists and {path} does not, unlike those before it; put all files of the "
                    f"mapping below {self.root / split}, or all below {self.root}",
                    row,
                )

    def _listed_in(self, image: int) -> str:
        mapping, row = place(self._starts, image)
        return f"{MAPPING}/{self._splits[mapping]}.csv, row {row}"


MinLabels = Annotated[Count, Field(description="leave out clients with samples of fewer classes")]
Buckets = Annotated[
    Count,
    Field(description="cut each client's labels at random into that many buckets, which arrive one a step"),
]
OwnedBuckets = Annotated[Count, Field(description="buckets that clients have from the start")]


class MappingSettings(WholeImageSettings):
    """Which clients and classes are taken, and when their labels arrive."""

    classes: Count | None = Field(
        None, description="take that many of the commonest classes; without it, all"
    )
    min_labels: MinLabels = 1
    buckets: Buckets = 1
    owned_steps: OwnedBuckets = 1
    test_mapping: bool = Field(
        False,
        description="take test samples from client_data_mapping/test.csv, with the clients of train.csv; "
        "otherwise they are held out of train.csv",
    )


class FedScale(ImageBuilder):
    """Any data set of images with FedScale's client mapping: a CSV of clients, files and labels.

    The class of a sample is its `label_name`, or its `label_id` where the file has no names. In FedScale's
    own data sets the clients of test.csv are not those of train.csv, so test samples are held out of
    train.csv. Without buckets, clients have all samples from the start. Files are below the folder `train`,
    as those of Open Images, or below the root, as those of FEMNIST: all where the first one is.
    """

    needs = (
        "{train,test}/FILE or FILE, and client_data_mapping/train.csv "
        "(client_id,sample_path,label_name,label_id)"
    )
    licence = "that of the data set (FedScale: Apache-2.0, for research)"

    Settings = MappingSettings
    settings: MappingSettings

    def list_samples(self, root: Path) -> Rows:
        refuse_owned(self.settings.owned_steps, "buckets", self.settings.buckets)
        splits = SPLITS if self.settings.test_mapping else SPLITS[:1]
        tally = self.tally()
        clients, labels, names = zip(*(_mapping(root, split, tally) for split in splits), strict=True)
        split = np.repeat(np.arange(len(splits), dtype=np.int8), [len(files) for files in names])
        rows = samples_of(
            MappedFiles(root, splits, names, self.skip_bad),
            client=_joined("client", clients),
            label=_joined("class", labels),
            split=split if self.settings.test_mapping else None,
        )
        rows = self._diverse(self._commonest(rows))
        return replace(rows, at=self._steps(rows))

    def _commonest(self, rows: Rows) -> Rows:
        """The samples of the commonest classes, by number and then by name."""
        wanted = self.settings.classes
        if wanted is None or wanted >= len(rows.classes):
            return rows
        counts = np.bincount(rows.label, minlength=len(rows.classes))
        taken = np.sort(np.argsort(-counts, kind="stable")[:wanted])
        left = rows.take(np.flatnonzero(np.isin(rows.label, taken)))
        classes = tuple(rows.classes[k] for k in taken.tolist())
        left = replace(left, label=np.searchsorted(taken, left.label), classes=classes)
        return left.noting(f"{len(left):,} of {len(rows):,} samples are of the {wanted} commonest classes")

    def _diverse(self, rows: Rows) -> Rows:
        """The samples of clients with enough classes."""
        least = self.settings.min_labels
        if least == 1:
            return rows
        _, classes = ranks(rows.client, rows.label)
        left = rows.take(np.flatnonzero(classes >= least))
        note = f"{len(left.clients):,} of {len(rows.clients):,} clients have samples of {least} classes"
        return left.noting(note)

    def _steps(self, rows: Rows) -> Ints:
        """(n,) the data step at which the bucket of each sample's label arrives at its client.

        A client's labels are put in a random order, which is cut into buckets as evenly as possible.
        """
        cell, of_row = np.unique(
            rows.client * len(rows.classes) + rows.label, return_inverse=True
        )  # a cell is a client's samples of a label
        drawn = RandomStreams(self.settings.seed).generator("buckets").random(len(cell))
        rank, size = ranks(cell // len(rows.classes), drawn, cell)
        bucket = interval_of(rank, size, self.settings.buckets)
        return (bucket - (self.settings.owned_steps - 1))[of_row]


class OpenImagesSettings(MappingSettings):
    """The same, with Fielding's preparation as default."""

    classes: Count | None = Field(100, description="take that many of the commonest classes")
    min_labels: MinLabels = 10
    buckets: Buckets = 10
    owned_steps: OwnedBuckets = 2


class OpenImages(FedScale):
    """Open Images with FedScale's client mapping, as Fielding plays it: 100 classes, ten buckets of labels.

    Of the samples of the 100 commonest classes, clients that have at least 10 of these classes remain. Each
    client's labels are cut at random into ten buckets: two are owned from the start, and one more arrives at
    each data step.
    """

    licence = "Open Images: annotations CC BY 4.0, images CC BY 2.0 as their pages state"
    play: ClassVar[Mapping[str, object]] = {"rounds_per_step": 50, "retain_rounds": 100}

    Settings = OpenImagesSettings
    settings: OpenImagesSettings


def _mapping(root: Path, split: str, tally: Tally) -> tuple[Coded, Coded, list[str]]:
    """The clients, classes and files of the mapping of one split, in its order."""
    path = root / MAPPING / f"{split}.csv"
    column = next((name for name in PATHS if name in header(path)), PATHS[0])
    table = TextColumns(path, ("client_id", column), tally, optional=("label_name", "label_id"))
    names = table.texts(column)
    refuse(FILES, Cells(file=names, column=column, folder=root / split), path, table.num_rows)
    return codes(table.texts("client_id")), _labels(table), names


def _folder(root: Path, split: str, names: Sequence[str], most_missing: int) -> str:
    """The folder that the files of a mapping are below, as its first one says that exists: "SPLIT/" or "".

    Raises DataFileError if none exists, unless as many may be missing.
    """
    for name in names:
        for folder in (f"{split}/", ""):
            if _exists(f"{root}/{folder}{name}"):
                return folder
    if len(names) > most_missing:
        problem = f"neither {root / split / names[0]} nor {root / names[0]} exists"
        raise DataFileError(root / MAPPING / f"{split}.csv", problem, 1)
    return f"{split}/"


def _labels(table: TextColumns) -> Coded:
    """The class of each row: its name, or its number where the file has no names."""
    if "label_id" not in table and "label_name" not in table:
        raise DataFileError(table.path, "has neither a column 'label_name' nor 'label_id'")
    if "label_name" in table and any(table.texts("label_name", may_be_empty=True)):
        return codes(table.texts("label_name"))
    numbers = table.integers("label_id")
    refuse(LABEL_IDS, Cells(label=numbers), table.path, table.num_rows)
    distinct, label = np.unique(numbers, return_inverse=True)
    return label, tuple(map(str, distinct.tolist()))


def _joined(what: str, columns: Sequence[Coded]) -> Coded:
    """The clients or classes of train and, if it is there, of test as one; InputError if train lacks one."""
    joined, known = columns[0]
    number = {name: place for place, name in enumerate(known)}
    for codes_of_test, names in columns[1:]:
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise InputError(
                f"{MAPPING}/test.csv: {what} {unknown[0]!r} has test samples and none in train.csv "
                f"({len(unknown)} of {len(names)} are so); leave out --test-mapping"
            )
        joined = np.concatenate([joined, np.array([number[name] for name in names])[codes_of_test]])
    return joined, known


def _exists(path: str) -> bool:
    """Whether there is anything at a path; False if it cannot be one.

    NOTE: of a text, as to make a Path takes longer than to look there.
    """
    return os.path.exists(path)  # noqa: PTH110
