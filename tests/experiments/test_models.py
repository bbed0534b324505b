"""The models that a run leaves have the accuracy of its log in one's own class; a run starts from one."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import driftscale as api
from emulator.errors import ConfigurationError, DataFileError, ForeignFileError, InputError
from experiments import config
from experiments.build import World, build_executor, build_world
from experiments.config import Experiment, Start
from experiments.locating import locator
from experiments.results.reading.not_recorded import NotRecordedError
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.executor.fakes import model
from tests.executor.modules.foreign import BNMLP
from tests.experiments.cli.conftest import Driftscale, driftscale  # noqa: F401  (a fixture)
from tests.experiments.running.played import logs, models, play
from tests.experiments.small import Story, small, write_small
from tests.reliability.rows import row
from traces.trace import TraceStream

pytestmark = pytest.mark.usefixtures("own_modules")

FOREIGN = "tests.executor.modules.foreign"
MODEL = {"kind": f"{FOREIGN}:BNMLP", "d_in": 64, "n_classes": 10, "hidden": 8}
MLP = {"kind": "mlp", "hidden": [8]}
LAST = 6
"""The last of seven rounds."""

ARMS: dict[str, dict[str, Any]] = {
    "one": {},
    "clusters": {"clusterer": {"kind": "fielding", "max_clusters": 3}},
    "head": {"solver": [{"kind": "personal_layers", "keep": "head"}, "sgd"]},
    "kept": {"training": {"batch_norm": "kept"}},
    "ditto": {"solver": ["ditto", "sgd"]},
    "buffered": {"aggregator": "fedbuff", "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4}},
    "alone": {"adaptation": "alone"},
}


def configured(
    *arms: dict[str, Any], model: Any = MODEL, rate: float = 0.05, rounds: int = LAST + 1, **changes: Any
) -> Experiment:
    """The small experiment with these arms, named a, b and so on."""
    named = [{"name": name, **arm} for name, arm in zip("abcd", arms, strict=False)]
    return small(
        training={"model": model, "local_steps": 5, "learning_rate": rate},
        round={"rounds": rounds, "over_commit": 1},
        arm=named,
        **changes,
    )


def kept_by(out: Path, arm: str = "a") -> Path:
    return out / arm / "seed-0" / "models.safetensors"


def last_record(out: Path, arm: str = "a") -> dict[str, Any]:
    record: dict[str, Any] = json.loads((out / arm / "seed-0" / "log.jsonl").read_text().splitlines()[-1])
    return record


def accuracies(modules: dict[int, nn.Module], world: World, round_: int) -> list[float]:
    """The accuracy of each client's module on its own test samples at a round, as anybody computes it."""
    stream = TraceStream(world.trace)
    stream.advance_to_round(round_)
    found = []
    for client, module in modules.items():
        rows = stream.held(np.array([client]), "test").rows(0)
        if len(rows) and stream.holding[client]:
            features, labels = torch.from_numpy(world.trace.features(rows)), world.trace.labels(rows)
            with torch.no_grad():
                found.append(float((module(features).argmax(1).numpy() == labels).mean()))
    return found


def loaded(module: nn.Module, state: dict[str, torch.Tensor]) -> nn.Module:
    module.load_state_dict(state, strict=True)
    return module.eval()


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one model, and one of several; `kept_by` has their files."""
    out = tmp_path_factory.mktemp("cold") / "out"
    play(configured({}, ARMS["clusters"], ARMS["alone"], model=MLP, rate=0.5), out)
    return out


@pytest.mark.parametrize("name", ARMS)
def test_a_model_has_outside_the_accuracy_that_the_log_says(name: str, tmp_path: Path) -> None:
    experiment, out = configured(ARMS[name]), tmp_path / "out"
    play(experiment, out)
    results, record, world = api.load(out), last_record(out), build_world(experiment, 0, locator(None, None))
    clients = range(world.trace.num_clients)
    modules = {client: loaded(BNMLP(64, 10, 8), results.model("a", 0, client=client)) for client in clients}
    logged = record["personal_accuracy"] if name in ("head", "kept", "ditto") else record["accuracy"]
    assert float(np.mean(accuracies(modules, world, LAST))) == pytest.approx(logged, abs=1e-12)


# -- to start from a file ------------------------------------------------------------------------------------


def test_a_run_that_learns_next_to_nothing_has_the_accuracy_of_the_file(cold: Path, tmp_path: Path) -> None:
    training = {"start": "models.safetensors", "learning_rate": 1e-30}
    experiment = configured({"training": training}, model=MLP, rounds=1)
    play(experiment, tmp_path / "out", kept_by(cold).parent)
    module = loaded(model("mlp", hidden=[8]).build((8, 8), 10), load_state(cold))
    world = build_world(experiment, 0, locator(kept_by(cold).parent, None))
    outside = accuracies(dict.fromkeys(range(world.trace.num_clients), module), world, 0)
    assert last_record(tmp_path / "out")["accuracy"] == pytest.approx(float(np.mean(outside)), abs=1e-12)
    assert last_record(tmp_path / "out")["accuracy"] > 0.3


def load_state(out: Path, arm: str = "a", **chosen: int) -> dict[str, torch.Tensor]:
    return api.load(out).model(arm, 0, **chosen)


def test_warm_arms_begin_with_their_file_beside_cold_ones(cold: Path) -> None:
    shutil.copy(kept_by(cold, "b"), cold / "clusters.safetensors")
    cluster = max(int(name.split("/")[1]) for name in load_file(kept_by(cold, "b")) if name[:5] == "model")
    start = {"file": "clusters.safetensors", "cluster": cluster}
    experiment = configured(
        {},
        {"training": {"start": "a/seed-0/models.safetensors"}},
        {"training": {"start": start}},
        {"training": {"start": {**start, "head": "new"}}},
        model=MLP,
    )
    world = build_world(experiment, 0, locator(cold, None))
    drawn, warm, of_cluster, new_head = (
        build_executor(experiment, arm, world).initial(0) for arm in experiment.arm
    )
    assert flat(load_state(cold)) == warm.tolist() != drawn.tolist()
    assert flat(load_state(cold, "b", cluster=cluster)) == of_cluster.tolist()
    assert new_head.tolist() == [*of_cluster[:520].tolist(), *drawn[520:].tolist()]


def flat(state: dict[str, torch.Tensor]) -> list[float]:
    """The numbers of an `MLP` as its vector has them."""
    return [
        number for name in ("1.weight", "1.bias", "3.weight", "3.bias") for number in flat_of(state[name])
    ]


def flat_of(tensor: torch.Tensor) -> list[float]:
    return tensor.ravel().tolist()  # type: ignore[no-any-return]


def test_one_table_starts_all_arms_and_an_arm_may_start_from_another_file() -> None:
    other = {"training": {"start": {"file": "b.safetensors", "cluster": 1}}}
    shared = small(training={"start": "a.safetensors"}, arm=[{"name": "a"}, {"name": "b", **other}])
    starts = [arm.training.start for arm in shared.arm]
    assert starts == [Start(file="a.safetensors"), Start(file="b.safetensors", cluster=1)]
    assert config.parse_experiment(shared.resolved(), "") == shared


def test_the_manifest_has_the_file_s_hash_and_a_changed_file_refuses_to_resume(
    cold: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(kept_by(cold), tmp_path))
    experiment, out = configured({"training": {"start": path.name}}, model=MLP), tmp_path / "out"
    run_plan(replace(plan_run(experiment, out, None, locator(tmp_path, None), fresh=False), until=2), Story())
    manifest, content = RunDirectory(out).manifest(), path.read_bytes()
    assert manifest is not None
    assert manifest.files[path.name].sha256 == hashlib.sha256(content).hexdigest()
    path.write_bytes(kept_by(cold, "b").read_bytes())
    with pytest.raises(DataFileError, match=r"models\.safetensors: has changed since the runs in this dir"):
        play(experiment, out, tmp_path)
    path.write_bytes(content)
    play(experiment, out, tmp_path)
    play(experiment, tmp_path / "whole", tmp_path)
    assert (logs(out), models(out)) == (logs(tmp_path / "whole"), models(tmp_path / "whole"))


def test_what_clients_trained_alone_starts_no_run(cold: Path, tmp_path: Path) -> None:
    experiment = configured({"training": {"start": "models.safetensors"}}, model=MLP)
    with pytest.raises(InputError, match=r"clients train alone, and no model is common$"):
        play(experiment, tmp_path / "out", kept_by(cold, "c").parent)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("model.pt", "must be a .safetensors, as ARM/seed-0/models.safetensors of a run directory; other"),
        ({"file": "model.safetensors", "cluster": -1}, "training.start.cluster = -1: "),
        ({"file": "model.safetensors", "head": "none"}, "training.start.head = 'none': "),
        ({"cluster": 1}, "file"),
        (3, "start"),
    ],
)
def test_a_start_that_is_none_is_refused_by_its_key(start: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^small: training\.start") as refused:
        small(training={"start": start})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


# -- where the file is looked for ----------------------------------------------------------------------------


def test_the_file_is_looked_for_beside_the_configuration_and_in_the_folders_of_data(
    cold: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    beside, data = tmp_path / "beside", tmp_path / "data"
    (beside / "old").mkdir(parents=True)
    (data / "old").mkdir(parents=True)
    path = write_small(beside, training={"model": MLP, "start": "old/models.safetensors"})
    absent = driftscale("check", path)
    assert absent.code == 2
    assert "old/models.safetensors: not found; looked for " in absent.error
    for folder, options in ((data, ("--data", data)), (beside, ())):
        shutil.copy(kept_by(cold), folder / "old")
        checked = driftscale("check", path, *options)
        assert (checked.code, checked.err) == (0, "")


@pytest.mark.slow
def test_a_file_that_does_not_fit_is_refused_before_any_run_with_a_line_for_each_misfit(
    cold: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    shutil.copy(kept_by(cold), tmp_path)
    path = write_small(
        tmp_path, training={"model": {"kind": "mlp", "hidden": [9]}, "start": "models.safetensors"}
    )
    for command in (("check", path), ("run", path, "--out", "out")):
        refused = driftscale(*command)
        assert refused.code == 2
        assert refused.err.splitlines()[-4:] == [
            f"error: {path}: arm 'global': models.safetensors: does not fit the model, 3 misfits:",
            "  1.weight: has shape (8, 64), and the model's (9, 64)",
            "  1.bias: has shape (8,), and the model's (9,)",
            "  3.weight: has shape (10, 8), and the model's (10, 9)",
        ]
    assert not (tmp_path / "out" / "global").exists()


# -- what is kept --------------------------------------------------------------------------------------------


def test_models_change_no_byte_of_a_log_whether_they_are_kept_or_read(tmp_path: Path) -> None:
    written = []
    for kept in (True, False, "auto"):
        out = tmp_path / str(kept)
        play(configured(ARMS["ditto"], model=MLP, output={"models": kept}), out)
        written.append(logs(out))
        assert kept_by(out).exists() == bool(kept)
    assert written[0] == written[1] == written[2]
    files = {path: path.read_bytes() for path in (tmp_path / "True").rglob("*") if path.is_file()}
    load_state(tmp_path / "True", client=3)
    assert files == {path: path.read_bytes() for path in (tmp_path / "True").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("most", "is_kept", "has_own"), [(10**6, True, True), (10_000, True, False), (1_000, False, False)]
)
def test_a_run_keeps_models_if_they_fit_and_what_clients_have_if_that_fits_too(
    most: int, is_kept: bool, has_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linear model takes 2,600 bytes, and those of twelve clients 31,200."""
    monkeypatch.setattr(config, "MOST_KEPT_BYTES", most)
    out = tmp_path / "out"
    play(configured(ARMS["ditto"], model="linear"), out)
    assert kept_by(out).exists() == is_kept
    if has_own:
        assert flat_of(load_state(out, client=0)["1.bias"]) != flat_of(load_state(out)["1.bias"])
    elif is_kept:
        assert load_state(out).keys() == {"1.weight", "1.bias"}
        with pytest.raises(InputError, match=r"own did not fit; with output\.models = true, runs keep it"):
            load_state(out, client=0)
    else:
        refusal = (
            r": arm 'a', seed 0: its runs recorded no models, or they were too large for output\.models = "
            r"'auto'; with output\.models = true, runs record them"
        )
        with pytest.raises(NotRecordedError, match=refusal):
            load_state(out)


def test_frozen_parameters_count_and_are_in_the_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 * 256 + 256 * 256 + 512 frozen numbers, and 2,570 that train."""
    frozen = {"kind": f"{FOREIGN}:Frozen", "d": 64, "n": 10}
    body, head = 4 * (64 * 256 + 256 * 256 + 512), 4 * 2_570
    for most, is_kept in ((body + 3 * head, True), (body + head - 1, False)):
        monkeypatch.setattr(config, "MOST_KEPT_BYTES", most)
        out = tmp_path / str(most)
        play(configured(ARMS["clusters"], model=frozen, rounds=2), out)
        assert kept_by(out).exists() == is_kept
    tensors = load_file(kept_by(tmp_path / str(body + 3 * head)))
    assert sum("body.1.weight" in name for name in tensors) == 1


def test_a_module_with_an_entry_of_its_own_ends_well_and_a_note_says_that_it_is_not_kept(
    tmp_path: Path,
) -> None:
    story = play(
        configured({}, model={"kind": f"{FOREIGN}:Versioned", "d_in": 64, "n_classes": 10}), tmp_path
    )
    assert story.ends == [("done", "a", 0)]
    [(_, said)] = [told for told in story.told if told[0] == "note"]
    assert said == (
        f"a, seed 0: its models are not kept: model '{FOREIGN}:Versioned': the entry '_extra_state' of its "
        f"state dict is neither a parameter nor a buffer"
    )
    with pytest.raises(NotRecordedError):
        load_state(tmp_path)


# -- what is asked for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"round": 3}, "round = 3: a run keeps the models of its last round alone; leave it out"),
        ({"client": 12}, "no client 12; clients are 0 to 11"),
        ({"cluster": 9}, "has no model of cluster 9; name one by `cluster`: 0"),
        ({"cluster": 0, "client": 0}, "name one of the two"),
        ({"arm": "z"}, "no finished run of arm 'z', seed 0; finished: a 0, b 0, c 0"),
        ({"seed": 1}, "no finished run of arm 'a', seed 1; finished: a 0, b 0, c 0"),
        ({"arm": "b"}, "has several models; name one by `cluster`: "),
        ({"arm": "c"}, "clients train alone, and no model is common"),
    ],
)
def test_a_model_that_is_not_there_is_refused_with_the_choices(
    asked: dict[str, Any], said: str, cold: Path
) -> None:
    with pytest.raises(InputError) as refused:
        api.load(cold).model(**{"arm": "a", "seed": 0, **asked})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_client_that_several_models_serve_has_none_and_the_clusters_do(tmp_path: Path) -> None:
    play(row("aue"), tmp_path)
    with pytest.raises(InputError, match=r"5 models serve client 0; name one of the clusters 4, 3, 2, 1, 0$"):
        load_state(tmp_path, "aue", client=0)
    served = load_file(kept_by(tmp_path, "aue"))["served"][0].tolist()
    assert all(load_state(tmp_path, "aue", cluster=cluster) for cluster in served)


def test_of_clients_that_train_alone_only_those_that_were_evaluated_have_a_model(tmp_path: Path) -> None:
    play(row("alone"), tmp_path)
    evaluated = load_file(kept_by(tmp_path, "alone"))["clients"].tolist()
    assert len(evaluated) == row("alone").round.evaluate_clients == 3
    for client in range(5):
        if client in evaluated:
            assert load_state(tmp_path, "alone", client=client)
        else:
            with pytest.raises(InputError, match=rf"client {client} was not evaluated at the end of the run"):
                load_state(tmp_path, "alone", client=client)


def test_a_run_that_until_stopped_has_no_models_yet(tmp_path: Path) -> None:
    plan = plan_run(configured({}, model=MLP), tmp_path, None, locator(None, None), fresh=False)
    run_plan(replace(plan, until=2), Story())
    with pytest.raises(InputError, match=r"was stopped by --until 2, and has no models before its end$"):
        load_state(tmp_path)


def test_of_a_folder_of_runs_one_is_chosen_first(cold: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(cold, tmp_path / name)
    with pytest.raises(InputError, match=r"a folder of run directories; choose one as results\['"):
        load_state(tmp_path)
    assert load_state(tmp_path / "one").keys() == load_state(cold).keys()


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_file_that_is_damaged_since_is_named(length: int, cold: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(cold, tmp_path / "out"))
    kept_by(out).write_bytes(kept_by(cold).read_bytes()[:length])
    with pytest.raises(DataFileError, match=r"models\.safetensors: cannot be read as safetensors"):
        load_state(out)


def test_a_link_in_its_place_is_not_followed(cold: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(cold, tmp_path / "out"))
    kept_by(out).unlink()
    kept_by(out).symlink_to(kept_by(cold))
    with pytest.raises(ForeignFileError, match=r"models\.safetensors"):
        load_state(out)


def test_what_anybody_wrote_starts_a_run_too(tmp_path: Path) -> None:
    module = BNMLP(64, 10, 8)
    save_file(module.state_dict(), tmp_path / "published.safetensors")
    experiment = configured({"training": {"start": "published.safetensors"}}, rounds=1)
    world = build_world(experiment, 0, locator(tmp_path, None))
    initial = build_executor(experiment, experiment.arm[0], world).initial(0)
    parts = [part.detach().ravel() for part in module.parameters()]
    assert initial.tolist() == torch.cat([*parts, torch.zeros(8), torch.ones(8)]).tolist()


def test_a_sweep_over_files_starts_each_cell_from_its_own(
    cold: Path,
    tmp_path: Path,
    driftscale: Driftscale,  # noqa: F811
) -> None:
    for name in ("first", "second"):
        shutil.copy(kept_by(cold), tmp_path / f"{name}.safetensors")
    path = write_small(tmp_path, training={"model": MLP})
    swept = ("--sweep", "training.start=first.safetensors,second.safetensors", "--arms", "global")
    ended = driftscale("run", path, "--out", "out", *swept)
    assert ended.code == 0, ended.err
    manifests = [
        json.loads(found.read_text()) for found in sorted((tmp_path / "out").glob("*/manifest.json"))
    ]
    assert [list(manifest["files"]) for manifest in manifests] == [
        ["first.safetensors"],
        ["second.safetensors"],
    ]
