"""Files of models, `safetensors`: those that a run leaves, and those of anybody that a run starts from.

A file of ours has, by their names in the module's state dict, `model/<cluster>/<name>` for each model;
`shared/<name>` for what is the same in all of them, such as frozen parameters; and `clients/<name>`, (n,
*shape), for what clients have of their own. `clients` (n,) are these; `served` (N, width) and `weights` (N,
width) say which clusters serve each client. Clients that mix the logits of both have `shares` (n,) of their
own. A file of somebody else has the names of a state dict alone. Nothing else than tensors is read: there is
no pickle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from emulator.errors import (
    ConfigurationError,
    DataFileError,
    InputError,
    shorten,
)
from emulator.messages import KeptModels
from emulator.storage.bounded import is_file, json_document
from emulator.storage.checkpoints import replacing
from executor.flat import FlatModel, bytes_of

FORMAT = "driftscale.models"
"""The one entry of the file's metadata: JSON with the version, and how predictions are combined."""

MOST_BYTES = 2**34
"""Largest file that is read, 16 GiB."""

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}
"""The names of the types of numbers that are written."""

MOST_MISFITS = 10
"""Misfits that an error names."""

MOST_SHOWN = 200
"""Most characters of a name in an error."""

LABEL = re.compile("[0-9]{1,9}")
"""A cluster, in the names of tensors."""


def write_models(path: Path, model: FlatModel, kept: KeptModels) -> None:
    """Write the models of a run, atomically, by the names in the state dict of the `model`'s module.

    Raises:
        ConfigurationError: The module's state dict has other entries than parameters and buffers, or a tensor
            that the format does not have.
        OSError: The file cannot be written.
    """
    own = kept.own or {}
    tensors = {
        "clients": torch.from_numpy(kept.clients),
        "served": torch.from_numpy(kept.served.astype(np.int32)),
    }
    if kept.weights.shape[1] > 1:
        tensors["weights"] = torch.from_numpy(kept.weights)
    if kept.shares is not None:
        tensors["shares"] = torch.from_numpy(kept.shares)
    for cluster, parameters in zip(kept.labels.tolist(), kept.models, strict=True):
        for name, tensor in model.state_dict(parameters).items():
            folder = f"model/{cluster}" if model.entries[name] in model.layout else "shared"
            tensors[f"{folder}/{name}"] = tensor
    for name, key in model.entries.items():
        if key is not None and key in own:
            tensors[f"clients/{name}"] = torch.from_numpy(own[key]).view(-1, *model.layout[key].shape)
    # Wide numbers first, so that all are aligned.
    tensors = dict(sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])))
    about = {"version": 1, "combine": kept.combine, "common": kept.common, "own": kept.own is not None}
    header = _header(model, tensors, json.dumps(about))
    with replacing(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for tensor in tensors.values():
            file.write(bytes_of(tensor))


def _header(model: FlatModel, tensors: Mapping[str, Tensor], about: str) -> bytes:
    """What stands before the numbers of `tensors`, in their order.

    NOTE: written here, and only read by the library: its writers hold copies of all tensors, or write beside
    the file under a name of their own, where a kill leaves it.
    """
    header: dict[str, object] = {"__metadata__": {FORMAT: about}}
    end = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES or tensor.layout is not torch.strided:
            kind = f"{tensor.dtype}, {tensor.layout}".replace("torch.", "")
            raise ConfigurationError(f"{model.name}: safetensors has no such tensor as {name!r} ({kind})")
        begin, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


@dataclass(frozen=True)
class ModelFile:
    """An open file of models; its tensors are read as they are asked for."""

    path: Path
    tensors: Any
    names: frozenset[str]
    about: Mapping[str, Any]

    @property
    def clusters(self) -> list[int]:
        """The clusters that it has a model of, ascending; none if it is not of a run."""
        found = {name.split("/")[1] for name in self.names if name.startswith("model/")}
        return sorted(int(cluster) for cluster in found if LABEL.fullmatch(cluster))

    @property
    def is_common(self) -> bool:
        """Whether its models mean something: they do not where clients train alone."""
        return bool(self.about.get("common", True))

    def state_dict(self, cluster: int | None = None) -> dict[str, Tensor]:
        """The state dict of a cluster's model; None: that of a file that is not of a run.

        Raises DataFileError if it is damaged.
        """
        if cluster is None:
            return {name: self._tensor(name) for name in sorted(self.names)}
        own, shared = f"model/{cluster}/", "shared/"
        return {
            name.removeprefix(folder): self._tensor(name)
            for folder in (shared, own)
            for name in sorted(self.names)
            if name.startswith(folder)
        }

    def chosen(self, cluster: int | None, client: int | None) -> dict[str, Tensor]:
        """The state dict of a cluster's model, or of what a client uses; None for both: of the only model.

        Raises:
            InputError: There is no such cluster or client, or it is not one model.
            DataFileError: The file is damaged.
        """
        if client is not None and cluster is not None:
            raise InputError(f"{self.path}: cluster = {cluster}, client = {client}: name one of the two")
        _refuse_no_number("cluster", cluster)
        _refuse_no_number("client", client)
        if client is not None:
            with _damage(self.path):
                return self._of_client(client)
        if not self.clusters:
            raise InputError(f"{self.path}: is not of a run, and has no clusters; leave out `cluster`")
        if not self.is_common:
            raise InputError(f"{self.path}: clients train alone, and no model is common")
        if cluster is None and len(self.clusters) == 1:
            cluster = self.clusters[0]
        if cluster not in self.clusters:
            what = "several models" if cluster is None else f"no model of cluster {cluster}"
            known = ", ".join(map(str, self.clusters))
            raise InputError(f"{self.path}: has {what}; name one by `cluster`: {known}")
        assert cluster is not None
        return self.state_dict(cluster)

    def _of_client(self, client: int) -> dict[str, Tensor]:
        served = self._tensor("served")
        if not 0 <= client < len(served):
            raise InputError(f"{self.path}: no client {client}; clients are 0 to {len(served) - 1}")
        clusters = [cluster for cluster in served[client].tolist() if cluster >= 0]
        if len(clusters) != 1:
            how = f"{len(clusters)} models serve" if clusters else "no model serves"
            several = f"; name one of the clusters {', '.join(map(str, clusters))}" if clusters else ""
            raise InputError(f"{self.path}: {how} client {client}{several}")
        if not self.about.get("own", True):
            raise InputError(
                f"{self.path}: what clients have of their own did not fit; with output.models = true, runs "
                f"keep it"
            )
        found = self.state_dict(clusters[0])
        place = (self._tensor("clients") == client).nonzero().flatten().tolist()
        if not self.is_common and not place:
            raise InputError(
                f"{self.path}: client {client} was not evaluated at the end of the run, and what it trained "
                f"alone is not kept"
            )
        if place and "shares" in self.names:
            raise InputError(
                f"{self.path}: client {client} uses two models, and mixes their logits: `clients/...` of the "
                f"file by its `shares`, and cluster {clusters[0]}; name the cluster for that one"
            )
        for name in sorted(self.names) if place else ():
            if name.startswith("clients/"):
                found[name.removeprefix("clients/")] = self._tensor(name, place[0])
        return found

    def _tensor(self, name: str, row: int | None = None) -> Tensor:
        with _damage(self.path):
            tensor: Tensor = self.tensors.get_slice(name)[... if row is None else row]
        return tensor.clone()  # it is mapped: with the file it would change, or end this process


def _refuse_no_number(what: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
        raise InputError(
            f"{what} = {value!r}: must be a number, as the column `{what}` of the frame `clients`"
        )


@contextmanager
def open_models(path: Path) -> Iterator[ModelFile]:
    """Context with a file of models; DataFileError if it is none, or of more than `MOST_BYTES`."""
    if not is_file(path):
        raise DataFileError(path, "is not a regular file")
    if path.stat().st_size > MOST_BYTES:
        raise DataFileError(path, f"has more than the {MOST_BYTES:,} bytes that are read of such a file")
    with _damage(path):
        opened = safe_open(path, "pt")
    with opened as tensors:
        with _damage(path):
            about = json_document((tensors.metadata() or {}).get(FORMAT, "{}"))
        if not isinstance(about, dict) or about.get("version", 1) != 1:
            raise DataFileError(path, f"its models are not of this version of driftscale ({FORMAT})")
        yield ModelFile(path, tensors, frozenset(tensors.keys()), about)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise DataFileError(path, f"cannot be read as safetensors ({_in_a_line(error)})") from error


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


@dataclass(frozen=True)
class ModelStart:
    """The file of a model to start from: of a `cluster`, if it has several; perhaps with a `new_head`."""

    path: Path
    cluster: int | None = None
    new_head: bool = False

    def begin(self, model: FlatModel) -> None:
        """Let a model, whose last layer is known, begin with the file's.

        Raises:
            ConfigurationError: It has no last layer to draw anew.
            InputError: The file is damaged, has no such cluster or no common model, or what is in it does not
                fit.
        """
        entries, head = model.entries.items(), model.head_tensors
        tied = [name for name, key in entries if key in head and name.rpartition(".")[0] != model.head]
        if self.new_head and (tied or not head):
            lacks = "has no trained linear layer that computes last"
            why = f"shares {tied[0]!r} with its last layer" if tied else lacks
            raise ConfigurationError(f"training.start.head = 'new': {model.name} {why}; leave it out")
        with open_models(self.path) as file:
            of_run = file.clusters or self.cluster is not None
            found = file.chosen(self.cluster, None) if of_run else file.state_dict()
            values, misfits = _fitted(model, found, self.new_head)
        if misfits:
            told, more = f"does not fit {model.name}", len(misfits) - MOST_MISFITS
            resized = all(misfit.startswith(("has shape", "is missing")) for misfit in misfits.values())
            if resized and {model.entries.get(name) for name in misfits} <= head:
                told += " but for its last layer (training.start.head = 'new' draws that anew)"
            lines = [f"{name}: {misfit}" for name, misfit in misfits.items()]
            listed = [*lines[:MOST_MISFITS], *([f"and {more} more"] if more > 0 else [])]
            several = "\n  ".join([f"{told}, {len(lines)} misfits:", *listed])
            raise DataFileError(self.path, several if len(lines) > 1 else f"{told}: {lines[0]}")
        model.begin(values)


def _fitted(
    model: FlatModel, found: Mapping[str, Tensor], new_head: bool
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a state dict by the model's names, and what is wrong with those that do not fit.

    Counters of batches may be missing, and so may one of several names of a tensor that layers share.
    """
    wanted = {name: torch.empty(part.shape, device="meta") for name, part in model.layout.items()}
    wanted |= {**model.constants, **model.counters}
    left = model.last_layer if new_head else set[str]()
    values: dict[str, Tensor] = {}
    misfits: dict[str, str] = {}
    for name, key in model.entries.items():
        if key is None or key in left or name not in found:
            continue
        if misfit := _misfit(found[name], wanted[key], values.get(key)):
            misfits[name] = misfit
        values[key] = found[name]
    lacking = {key for key in model.entries.values() if key} - values.keys() - left - model.counters.keys()
    unknown = [name for name in found if name not in model.entries]
    for prefix in sorted({unknown[0].removesuffix(entry) for entry in model.entries} if unknown else ()):
        if prefix.endswith(".") and all(
            name.startswith(prefix) and name.removeprefix(prefix) in model.entries for name in found
        ):
            return {}, {prefix: "begins all its names, and none of the model's; save it without"}
    misfits |= {key: f"is missing, of shape {tuple(wanted[key].shape)}" for key in wanted if key in lacking}
    return values, misfits | {shorten(name, MOST_SHOWN): "is not in the model" for name in unknown}


def _misfit(found: Tensor, wanted: Tensor, shared: Tensor | None) -> str:
    """What is wrong with a tensor; empty if nothing is. `shared`: what it must be equal to."""
    if found.shape != wanted.shape:
        return f"has shape {tuple(found.shape)}, and the model's {tuple(wanted.shape)}"
    if found.dtype != wanted.dtype:
        return f"is {found.dtype}, and the model's {wanted.dtype}"
    if not found.isfinite().all() and (wanted.is_meta or wanted.isfinite().all()):  # not of a causal mask
        return "is not finite"
    if shared is not None and not torch.equal(found, shared):
        return "differs from the same tensor under another name, which layers of the model share"
    return ""
