"""Files of models: what is written is read again to the bit, and what does not fit is named in one error."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from emulator.arrays import Floats32
from emulator.errors import ConfigurationError, DataFileError, InputError
from emulator.messages import KeptModels
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.models.base import ModelSpec
from executor.models.files import FORMAT, MOST_BYTES, ModelStart, open_models
from tests.executor.fakes import FakeReader, model, module, rule
from tests.executor.modules.foreign import BNMLP, Frozen, LoRALinear, LoRAMLP, TiedAuto, Versioned
from tests.executor.modules.zoo import ZOO

State = dict[str, Tensor]

BODY, HEAD = {"1.weight": (5, 6), "1.bias": (5,)}, {"3.weight": (4, 5), "3.bias": (4,)}
"""The state dict of `MLP`, on samples of six features with four labels."""

MLP = model("mlp", hidden=[5])


class Buffers(nn.Module):
    """Buffers of other precisions, infinite and transposed ones, and one that is not in the state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 4)
        self.register_buffer("coarse", torch.full((6,), 0.1, dtype=torch.bfloat16))
        self.register_buffer("order", torch.arange(6))
        self.register_buffer("mask", torch.triu(torch.full((4, 4), float("-inf")), 1))
        self.register_buffer("turned", torch.randn(4, 6).t())
        self.register_buffer("passing", torch.ones(6), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, self.order] * self.coarse.float() * self.passing
        return self.fc(x) + x @ self.turned + self.mask.exp().sum(0)


class AllLowRank(nn.Module):
    """Its last linear layer is frozen; what trains lies beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = LoRALinear(nn.Linear(6, 5)), LoRALinear(nn.Linear(5, 4))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(self.first(x).relu())
        return logits


class Headless(nn.Module):
    """A product that is no linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.product = nn.Parameter(torch.randn(6, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.product


class Complex(Headless):
    """A buffer that safetensors has no type for."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("phase", torch.ones(4, dtype=torch.complex128))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.phase.real.float()


SPECS: dict[str, ModelSpec] = {
    "linear": model("linear"),
    "mlp": MLP,
    "masked": model("masked", inner="linear"),
    "batch norm": module(BNMLP, d_in=6, n_classes=4, hidden=5),
    "tied": module(TiedAuto, d=6, n=4),
    "frozen": module(Frozen, d=6, n=4),
    "low rank": module(LoRAMLP, d=6, n=4, hidden=5),
    "low rank alone": module(AllLowRank),
    "buffers": module(Buffers),
    "headless": module(Headless),
}
LAST_LAYERS: dict[str, set[str]] = {
    "linear": {"1.weight", "1.bias"},
    "mlp": set(HEAD),
    "masked": {"inner.1.weight", "inner.1.bias"},
    "batch norm": {"fc2.weight", "fc2.bias"},
    "tied": {"fc.weight", "fc.bias"},
    "frozen": {"head.weight", "head.bias"},
    "low rank": {"net.5.weight", "net.5.bias"},
    "low rank alone": {"last.A", "last.B"},
    "buffers": {"fc.weight", "fc.bias"},
    "headless": {"product"},
}


def executor(
    spec: ModelSpec, start: ModelStart | None = None, seed: int = 3, reader: FakeReader | None = None
) -> LocalExecutor:
    return LocalExecutor(reader or FakeReader(), spec, [rule("sgd")], RandomStreams(seed), start=start)


def begun(
    path: Path,
    spec: ModelSpec = MLP,
    cluster: int | None = None,
    head: str = "kept",
    reader: FakeReader | None = None,
) -> LocalExecutor:
    return executor(spec, ModelStart(path, cluster, new_head=head == "new"), seed=4, reader=reader)


def write(
    trainer: LocalExecutor,
    path: Path,
    *models: Floats32,
    served: Sequence[Sequence[int]] = ((0,),),
    own: tuple[Sequence[int], Mapping[str, Floats32] | None] = ((), {}),
    common: bool = True,
    shares: Sequence[float] | None = None,
) -> Path:
    """Write models 0, 1, ... as a run does."""
    clusters, clients = np.array(served), np.array(own[0], dtype=np.int64)
    bank = np.stack(models) if models else np.zeros((0, trainer.num_parameters), dtype=np.float32)
    numbers, weights = np.arange(len(models)), np.ones(clusters.shape)
    mixed = None if shares is None else np.array(shares)
    kept = KeptModels(numbers, bank, clusters, weights, "votes", common, clients, own[1], mixed)
    trainer.write_models(path, kept)
    return path


def drawn(trainer: LocalExecutor, number: int = 0) -> Floats32:
    return np.random.default_rng(number).random(trainer.num_parameters, dtype=np.float32)


def published(folder: Path, **changes: Tensor | None) -> Path:
    """Write the state dict of an `MLP` as anybody does; an entry that is None is left out."""
    state: dict[str, Tensor | None] = {name: torch.rand(shape) for name, shape in (BODY | HEAD).items()}
    path = folder / "published.safetensors"
    save_file({name: part for name, part in (state | changes).items() if part is not None}, path)
    return path


def refused(path: Path, spec: ModelSpec = MLP, **named: object) -> str:
    """What is said of a file that no run can begin with."""
    with pytest.raises(InputError) as error:
        begun(path, spec, **named)  # type: ignore[arg-type]
    where, _, what = str(error.value).partition(": ")
    assert where == str(path)
    return what


# -- written and begun with ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "reader"),
    [
        *(pytest.param(spec, FakeReader(), id=name) for name, spec in SPECS.items()),
        *(pytest.param(kept.spec(), kept.reader(), id=kept.name) for kept in ZOO),
    ],
)
def test_a_run_begins_with_the_model_of_a_cluster_to_the_bit(
    spec: ModelSpec, reader: FakeReader, tmp_path: Path
) -> None:
    first = executor(spec, reader=reader)
    models = [drawn(first, number) for number in (0, 1)]
    path = write(first, tmp_path / "a.safetensors", *models)
    for cluster in (0, 1):
        again = begun(path, spec, cluster, reader=reader)
        assert again.initial(0).tobytes() == models[cluster].tobytes()
        write(again, tmp_path / "b.safetensors", again.initial(0))  # with frozen parameters and buffers
        with open_models(path) as kept, open_models(tmp_path / "b.safetensors") as left:
            before, after = kept.chosen(cluster, None), left.chosen(None, None)
        assert before.keys() == after.keys()
        for entry, tensor in before.items():
            assert (after[entry].dtype, after[entry].shape) == (tensor.dtype, tensor.shape)
            assert torch.equal(after[entry], tensor)


@pytest.mark.parametrize("name", SPECS)
def test_later_initial_models_are_the_file_s_but_for_the_last_layer_which_is_drawn_as_ever(
    name: str, tmp_path: Path
) -> None:
    first, cold = executor(SPECS[name]), executor(SPECS[name], seed=4)
    start = drawn(first)
    warm = begun(write(first, tmp_path / "a.safetensors", start), SPECS[name])
    for number in (1, 2):
        expected, fresh = start.copy(), cold.initial(number)
        for part in (warm.layout[entry] for entry in LAST_LAYERS[name]):
            expected[part.first : part.last] = fresh[part.first : part.last]
        assert warm.initial(number).tobytes() == expected.tobytes()
    assert warm.initial(1).tobytes() != warm.initial(2).tobytes()


@pytest.mark.parametrize("name", SPECS)
def test_the_state_dict_in_a_file_is_one_that_the_module_itself_loads(name: str, tmp_path: Path) -> None:
    spec = SPECS[name]
    path = write(executor(spec), tmp_path / "a.safetensors", drawn(executor(spec)))
    with open_models(path) as file:
        spec.build((6,), 4).load_state_dict(file.chosen(0, None), strict=True)


def test_the_same_content_has_the_same_bytes(tmp_path: Path) -> None:
    contents = set()
    for _ in range(3):
        trainer = executor(SPECS["batch norm"])
        own = [1, 4], {"fc2.bias": np.ones((2, 4), dtype=np.float32)}
        path = write(trainer, tmp_path / "a.safetensors", drawn(trainer), drawn(trainer, 1), own=own)
        contents.add(path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            module(Versioned, d_in=6, n_classes=4),
            r"the entry '_extra_state' of its state dict is neither a parameter nor a buffer",
        ),
        (module(Complex), r"safetensors has no such tensor as 'shared/phase' \(complex128, strided\)"),
    ],
)
def test_a_module_of_which_nothing_can_be_written_is_named_and_leaves_no_file(
    spec: ModelSpec, why: str, tmp_path: Path
) -> None:
    trainer = executor(spec)
    with pytest.raises(ConfigurationError, match=rf"^model '\S+': {why}$"):
        write(trainer, tmp_path / "a.safetensors", drawn(trainer))
    assert list(tmp_path.iterdir()) == []


# -- what does not fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"1.bias": None}, "1.bias: is missing, of shape (5,)"),
        ({"fc.bias": torch.ones(4)}, "fc.bias: is not in the model"),
        ({"n" * 1000: torch.ones(4)}, f"{'n' * 199}…: is not in the model"),
        ({"1.weight": torch.ones(6, 5)}, "1.weight: has shape (6, 5), and the model's (5, 6)"),
        ({"1.weight": torch.ones(30)}, "1.weight: has shape (30,), and the model's (5, 6)"),
        ({"1.bias": torch.ones(5).half()}, "1.bias: is torch.float16, and the model's torch.float32"),
        ({"1.bias": torch.ones(5).double()}, "1.bias: is torch.float64, and the model's torch.float32"),
        ({"1.bias": torch.full((5,), torch.nan)}, "1.bias: is not finite"),
        ({"3.weight": torch.full((4, 5), torch.inf)}, "3.weight: is not finite"),
    ],
)
def test_an_entry_that_does_not_fit_is_named(
    changes: Mapping[str, Tensor | None], line: str, tmp_path: Path
) -> None:
    assert refused(published(tmp_path, **changes)) == f"does not fit the model: {line}"


@pytest.mark.parametrize("bias", [None, torch.ones(9)])
def test_where_only_the_last_layer_does_not_fit_it_is_said_how_it_is_drawn_anew(
    bias: Tensor | None, tmp_path: Path
) -> None:
    told = refused(published(tmp_path, **{"3.bias": bias}))
    assert told.startswith(
        "does not fit the model but for its last layer (training.start.head = 'new' draws "
    )


def test_a_prefix_of_all_names_is_named(tmp_path: Path) -> None:
    path = tmp_path / "parallel.safetensors"
    save_file({f"module.{name}": tensor for name, tensor in load_file(published(tmp_path)).items()}, path)
    told = "does not fit the model: module.: begins all its names, and none of the model's; save it without"
    assert refused(path) == told


def test_what_names_have_in_common_is_no_prefix_if_the_rest_are_not_the_model_s(tmp_path: Path) -> None:
    save_file({"11.weight": torch.ones(5, 6), "11.bias": torch.ones(5)}, tmp_path / "other.safetensors")
    told = refused(tmp_path / "other.safetensors")
    assert "11.weight: is not in the model" in told
    assert "begins all its names" not in told


def test_all_misfits_are_in_one_error_and_of_many_ten_are_named(tmp_path: Path) -> None:
    lacking = dict.fromkeys(BODY | HEAD)
    surplus = {f"layer{number:02}": torch.ones(1) for number in range(8)}
    first, *said = refused(published(tmp_path, **lacking, **surplus)).split("\n  ")
    assert first == "does not fit the model, 12 misfits:"
    assert said[:4] == [f"{name}: is missing, of shape {shape}" for name, shape in (BODY | HEAD).items()]
    assert said[4:] == [*(f"layer{number:02}: is not in the model" for number in range(6)), "and 2 more"]


def test_of_a_tensor_that_layers_share_one_name_is_enough_and_all_must_agree(tmp_path: Path) -> None:
    spec, path = SPECS["tied"], tmp_path / "a.safetensors"
    state = {name: torch.rand(part.shape) for name, part in TiedAuto(6, 4).state_dict().items()}
    state["b.weight"] = state["a.weight"].clone()
    for left_out in ("a.weight", "b.weight"):
        save_file({name: part for name, part in state.items() if name != left_out}, path)
        assert np.array_equal(begun(path, spec).initial(0)[:36], state["a.weight"].ravel().numpy())
    save_file(state | {"b.weight": torch.zeros(6, 6)}, path)
    differs = "b.weight: differs from the same tensor under another name, which layers of the model share"
    assert refused(path, spec).endswith(f": {differs}")
    save_file({name: part for name, part in state.items() if ".weight" not in name or name[0] == "f"}, path)
    assert refused(path, spec).endswith(": a.weight: is missing, of shape (6, 6)")


def test_counters_of_batches_may_be_missing_and_are_kept_if_they_are_there(tmp_path: Path) -> None:
    spec, path, kept = SPECS["batch norm"], tmp_path / "a.safetensors", tmp_path / "kept.safetensors"
    state = BNMLP(6, 4, 5).state_dict()
    counter = "bn.num_batches_tracked"
    save_file(state | {counter: torch.tensor(7)}, path)
    trainer = begun(path, spec)
    write(trainer, kept, trainer.initial(0))
    assert load_file(kept)[f"shared/{counter}"] == 7
    save_file({name: part for name, part in state.items() if name != counter}, path)
    assert begun(path, spec).initial(0).tobytes() == trainer.initial(0).tobytes()
    save_file(state | {counter: torch.tensor(7.0)}, path)
    assert refused(path, spec).endswith(f"{counter}: is torch.float32, and the model's torch.int64")


def test_a_run_keeps_what_it_has_read_though_the_file_changes_in_its_place(tmp_path: Path) -> None:
    spec, path = SPECS["frozen"], tmp_path / "a.safetensors"
    save_file(Frozen(6, 4).state_dict(), path)
    trainer = begun(path, spec)
    before = write(trainer, tmp_path / "b.safetensors", trainer.initial(0)).read_bytes()
    with open_models(path) as file:
        read = file.state_dict()
    kept = {name: tensor.tolist() for name, tensor in read.items()}
    with path.open("r+b") as opened:
        opened.seek(-4 * 256 * 256, os.SEEK_END)
        opened.write(bytes(4 * 256 * 256))
    assert write(trainer, tmp_path / "b.safetensors", trainer.initial(0)).read_bytes() == before
    assert {name: tensor.tolist() for name, tensor in read.items()} == kept


def test_only_a_buffer_that_is_not_finite_as_it_is_built_may_not_be_finite(tmp_path: Path) -> None:
    state, path = Buffers().state_dict(), tmp_path / "a.safetensors"
    save_file({name: part.contiguous() for name, part in state.items()}, path)
    begun(path, SPECS["buffers"])
    save_file({**state, "turned": torch.full((6, 4), torch.nan)}, path)
    assert refused(path, SPECS["buffers"]).endswith(": turned: is not finite")


# -- a new head ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict.fromkeys(HEAD),
        {"3.weight": torch.ones(7, 5), "3.bias": torch.ones(7)},
        {"3.weight": torch.ones(4, 5).half(), "3.bias": None},
    ],
)
def test_a_new_head_is_drawn_as_ever_whatever_the_file_has_in_its_place(
    changes: Mapping[str, Tensor | None], tmp_path: Path
) -> None:
    path = published(tmp_path, **changes)
    warm, cold, state = begun(path, head="new"), executor(MLP, seed=4), load_file(path)
    for number in (0, 1):
        initial = warm.initial(number)
        assert initial[:30].tolist() == state["1.weight"].ravel().tolist()
        assert initial[30:35].tolist() == state["1.bias"].tolist()
        assert initial[35:].tobytes() == cold.initial(number)[35:].tobytes()


def test_with_a_new_head_all_else_must_fit(tmp_path: Path) -> None:
    path = published(tmp_path, **{"1.bias": None, "4.bias": torch.ones(4)})
    said = "2 misfits:\n  1.bias: is missing, of shape (5,)\n  4.bias: is not in the model"
    assert refused(path, head="new").endswith(said)


@pytest.mark.parametrize("name", ["headless", "low rank alone"])
def test_without_a_linear_layer_that_computes_last_and_trains_no_head_is_new(
    name: str, tmp_path: Path
) -> None:
    spec = SPECS[name]
    path = write(executor(spec), tmp_path / "a.safetensors", drawn(executor(spec)))
    refusal = (
        r"^training\.start\.head = 'new': model '\S+' has no trained linear layer that computes last; "
        r"leave it out$"
    )
    with pytest.raises(ConfigurationError, match=refusal):
        begun(path, spec, head="new")


# -- clusters ------------------------------------------------------------------------------------------------


def test_of_several_clusters_one_is_named_and_it_must_be_there(tmp_path: Path) -> None:
    trainer = executor(MLP)
    path = write(trainer, tmp_path / "a.safetensors", *(drawn(trainer, number) for number in range(3)))
    names = "name one by `cluster`: 0, 1, 2"
    assert refused(path) == f"has several models; {names}"
    assert refused(path, cluster=3) == f"has no model of cluster 3; {names}"


def test_a_published_file_has_no_clusters(tmp_path: Path) -> None:
    told = refused(published(tmp_path), cluster=0)
    assert told == "is not of a run, and has no clusters; leave out `cluster`"


def test_no_run_begins_with_what_clients_trained_alone(tmp_path: Path) -> None:
    trainer = executor(MLP)
    path = write(trainer, tmp_path / "a.safetensors", drawn(trainer), common=False)
    assert refused(path) == "clients train alone, and no model is common"


# -- who is served -------------------------------------------------------------------------------------------


SERVED = [[0, -1], [1, -1], [1, 0], [-1, -1]]


def test_a_client_has_the_model_that_serves_it_with_what_it_has_of_its_own(tmp_path: Path) -> None:
    trainer = executor(MLP)
    models = [drawn(trainer, number) for number in (0, 1)]
    own = np.array([[1, 2, 3, 4]], dtype=np.float32)
    path = write(trainer, tmp_path / "a.safetensors", *models, served=SERVED, own=([1], {"3.bias": own}))
    with open_models(path) as file:
        for client, numbers in ((0, models[0]), (1, [*models[1][:-4], *own[0]])):
            state = file.chosen(None, client)
            assert list(state) == sorted(BODY | HEAD)
            in_order = torch.cat([state[name].ravel() for name in BODY | HEAD])
            assert in_order.tolist() == list(map(float, numbers))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ((None, None), "has several models; name one by `cluster`: 0, 1"),
        ((2, None), "has no model of cluster 2; name one by `cluster`: 0, 1"),
        ((None, 2), "2 models serve client 2; name one of the clusters 1, 0"),
        ((None, 3), "no model serves client 3"),
        ((None, 4), "no client 4; clients are 0 to 3"),
        ((None, -1), "no client -1; clients are 0 to 3"),
        ((0, 0), "cluster = 0, client = 0: name one of the two"),
    ],
)
def test_what_is_not_one_model_is_refused(
    chosen: tuple[int | None, int | None], said: str, tmp_path: Path
) -> None:
    trainer = executor(MLP)
    path = write(trainer, tmp_path / "a.safetensors", drawn(trainer), drawn(trainer, 1), served=SERVED)
    with open_models(path) as file, pytest.raises(InputError) as refusal:
        file.chosen(*chosen)
    assert str(refusal.value) == f"{path}: {said}"


def test_of_clients_whose_own_tensors_did_not_fit_none_has_a_model_and_clusters_do(tmp_path: Path) -> None:
    trainer = executor(MLP)
    path = write(trainer, tmp_path / "a.safetensors", drawn(trainer), own=((), None))
    with open_models(path) as file:
        assert file.chosen(0, None).keys() == file.chosen(None, None).keys() == (BODY | HEAD).keys()
        with pytest.raises(InputError, match=r"own did not fit; with output\.models = true, runs keep it$"):
            file.chosen(None, 0)


def test_a_client_that_mixes_the_outputs_of_two_models_has_none_of_its_own_and_its_share_is_there(
    tmp_path: Path,
) -> None:
    trainer = executor(MLP)
    own = [1], {"head.bias": np.ones((1, 4), dtype=np.float32)}
    path = write(
        trainer, tmp_path / "a.safetensors", drawn(trainer), served=[[0], [0]], own=own, shares=[0.25]
    )
    with open_models(path) as file:
        assert file.tensors.get_tensor("shares").tolist() == [0.25]
        assert file.chosen(None, 0).keys() == (BODY | HEAD).keys()
        with pytest.raises(InputError, match=r"client 1 uses two models, .* and cluster 0; name the cluster"):
            file.chosen(None, 1)


# -- damage --------------------------------------------------------------------------------------------------


def test_a_file_that_is_cut_off_anywhere_is_damaged(tmp_path: Path) -> None:
    path = published(tmp_path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for length in (0, 1, 7, 8, 9, header - 1, header, header + 1, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert refused(path).startswith("cannot be read as safetensors (")


EMPTY = b"\x02" + bytes(7) + b"{}"


@pytest.mark.parametrize("content", [b"garbage", b"\x80\x02}q\x00." * 40, b"\xff" * 64, EMPTY[:-1] + b"{"])
def test_what_is_no_file_of_tensors_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert refused(path).startswith("cannot be read as safetensors (SafetensorError: ")


def test_a_file_without_a_tensor_lacks_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(EMPTY)
    assert refused(path).startswith("does not fit the model, 4 misfits:")


def test_a_folder_and_a_file_beyond_the_bound_are_refused_unread(tmp_path: Path) -> None:
    assert refused(tmp_path) == "is not a regular file"
    assert refused(tmp_path / "nothing") == "is not a regular file"
    path = published(tmp_path)
    os.truncate(path, MOST_BYTES + 1)
    assert refused(path) == "has more than the 17,179,869,184 bytes that are read of such a file"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("{", "cannot be read as safetensors (JSONDecodeError: Expecting property name"),
        ("[" * 100_000, "cannot be read as safetensors (ValueError: nested deeper than 32"),
        ("[]", "its models are not of this version of driftscale (driftscale.models)"),
        ('{"version":2}', "its models are not of this version of driftscale (driftscale.models)"),
    ],
)
def test_metadata_that_is_not_ours_is_refused(metadata: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({name: torch.ones(shape) for name, shape in (BODY | HEAD).items()}, path, {FORMAT: metadata})
    assert refused(path).startswith(said)


def without(name: str) -> Callable[[State], object]:
    return lambda tensors: tensors.pop(name)


def with_(name: str, tensor: Tensor) -> Callable[[State], object]:
    return lambda tensors: tensors.update({name: tensor})


@pytest.mark.parametrize(
    "harm",
    [
        without("served"),
        with_("served", torch.tensor(0)),
        with_("served", torch.zeros(4, dtype=torch.int32)),
        without("clients"),
        with_("clients/3.bias", torch.zeros(0, 4)),
    ],
)
def test_a_file_of_a_run_whose_tables_are_damaged_is_refused_in_one_line(
    harm: Callable[[State], object], tmp_path: Path
) -> None:
    trainer = executor(MLP)
    own = [0], {"3.bias": np.ones((1, 4), dtype=np.float32)}
    path = write(trainer, tmp_path / "a.safetensors", drawn(trainer), served=[[0]] * 4, own=own)
    tensors = load_file(path)
    harm(tensors)
    save_file(tensors, path)
    with open_models(path) as file, pytest.raises(DataFileError, match=r"cannot be read as safetensors"):
        file.chosen(None, 0)


def test_names_that_only_look_like_clusters_are_of_no_cluster(tmp_path: Path) -> None:
    path = published(tmp_path, **{"model/²/a": torch.ones(1), f"model/{'9' * 5000}/a": torch.ones(1)})
    assert "misfits" in refused(path)
    with open_models(path) as file:
        assert file.clusters == []
