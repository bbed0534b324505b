"""Every named profile through the same checks, and the distinction of names and paths."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from device_profiles import PROFILES, DeviceProfile, Fleet, load_profile
from emulator.errors import ConfigurationError, DataFileError, InputError, UnknownNameError

Generators = Callable[[], np.random.Generator]
CATALOGUE = ["datacenter", "iot", "smartphones", "uniform"]


def test_the_catalogue_has_these_profiles() -> None:
    assert [name for name in PROFILES.names() if name in CATALOGUE] == CATALOGUE


@pytest.fixture(params=PROFILES.names())
def profile(request: pytest.FixtureRequest) -> DeviceProfile:
    return load_profile(request.param)


def test_a_profile_names_its_reference_model_and_source(profile: DeviceProfile) -> None:
    assert profile.reference_model
    assert profile.reference_flops is not None
    assert profile.reference_flops > 1e6
    assert len(profile.source) > 20


@pytest.mark.parametrize("num_clients", [0, 1, 1000])
def test_a_profile_draws_the_given_number_of_clients(
    profile: DeviceProfile, generator: Generators, num_clients: int
) -> None:
    fleet = profile.draw(num_clients, generator())
    assert isinstance(fleet, Fleet)
    for values in fleet.columns().values():
        assert values.shape == (num_clients,)
        assert values.dtype == np.float64


def test_a_draw_is_a_function_of_the_generator_alone(profile: DeviceProfile, generator: Generators) -> None:
    first, second = profile.draw(200, generator()), profile.draw(200, generator())
    for name, values in first.columns().items():
        assert values.tolist() == second.columns()[name].tolist()


def test_a_draw_leaves_the_global_generator_alone(profile: DeviceProfile, generator: Generators) -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002  the test is about the global state
    profile.draw(200, generator())
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_all_devices_of_uniform_are_alike(generator: Generators) -> None:
    for values in load_profile("uniform").draw(100, generator()).columns().values():
        assert len(set(values)) == 1


@pytest.mark.slow
def test_uniform_is_the_median_smartphone(generator: Generators) -> None:
    medians = load_profile("smartphones").draw(200_000, generator()).quantiles([0.5])
    uniform = load_profile("uniform").draw(1, generator()).columns()
    assert {name: value[0] for name, value in uniform.items()} == pytest.approx(
        {name: value[0] for name, value in medians.items()}, rel=0.01
    )


@pytest.mark.slow
def test_smartphones_have_the_published_means_and_quantiles(generator: Generators) -> None:
    fleet = load_profile("smartphones").draw(500_000, generator())
    ms, kibit = fleet.seconds_per_sample * 1000 / 3, fleet.download_bytes_per_s / 128
    assert ms.mean() == pytest.approx(78.02, rel=0.005)
    assert kibit.mean() == pytest.approx(13_736.14, rel=0.01)
    assert np.quantile(ms, [0.01, 0.05, 0.5, 0.95]) == pytest.approx([15, 19, 41, 190], abs=1e-9)
    probabilities = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
    published = [1065, 1402, 1817, 2892, 6079, 14_004, 32_687, 52_066, 99_211]
    assert np.quantile(kibit, probabilities) == pytest.approx(published, rel=0.02)
    assert (kibit.min(), kibit.max()) == pytest.approx((1016.88, 204_056.75), rel=0.01)
    assert abs(np.corrcoef(ms, kibit)[0, 1]) < 0.01


@pytest.mark.slow
def test_the_smartphone_tables_are_the_recovered_ones(devices_data: Path, generator: Generators) -> None:
    import pyarrow.parquet as pq

    recovered = pq.read_table(devices_data / "fedscale_bandwidth_quantiles.parquet")
    ours = np.loadtxt(
        Path(sys.modules["device_profiles"].__file__ or "").parent / "catalogue" / "fedscale_bandwidth.csv",
        delimiter=",",
        skiprows=1,
    )
    interpolated = np.exp(np.interp(recovered["quantile"].to_numpy(), ours[:, 0], np.log(ours[:, 1])))
    assert interpolated == pytest.approx(recovered["bandwidth_kbps"].to_numpy(), rel=0.0025)

    models = pq.read_table(devices_data / "fedscale_compute_latency_distribution.parquet")
    ms = load_profile("smartphones").draw(139_000, generator()).seconds_per_sample * 1000 / 3
    values, counts = np.unique(ms.round(6), return_counts=True)
    assert values.tolist() == models["compute_ms_per_sample"].to_pylist()
    assert counts / 1000 == pytest.approx(models["n_phone_models"].to_numpy(), abs=0.5)


# -- names and paths --------------------------------------------------------------------------------------


def test_the_error_for_an_unknown_name_lists_the_choices_and_mentions_paths() -> None:
    with pytest.raises(UnknownNameError) as error:
        load_profile("smartphone", "digits.toml: devices.profile")
    message = str(error.value)
    assert message.startswith("digits.toml: devices.profile: unknown device profile")
    assert "a path ending in .csv, .parquet, .toml" in message
    assert "choices: datacenter, iot, smartphones, uniform" in message
    assert "did you mean 'smartphones'?" in message


TABLE = "device_id,seconds_per_sample,bandwidth_kibit_per_s\n1,0.5,10\n"


def test_a_path_is_read_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    for path in (tmp_path / "mine.csv", str(tmp_path / "mine.csv")):
        assert load_profile(path).draw(1, np.random.default_rng(0)).seconds_per_sample[0] == 0.5


@pytest.mark.parametrize("name", ["none.toml", "none.csv"])
def test_a_path_to_nothing_is_one_clear_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataFileError) as error:
        load_profile(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}: no such file"


@dataclass(frozen=True)
class OneSpeed:
    """A third party's profile."""

    name: str = "one-speed"
    reference_model: str | None = None
    reference_flops: float | None = None
    source: str = "made up"

    def draw(self, num_clients: int, generator: np.random.Generator) -> Fleet:
        ones = np.ones(num_clients)
        return Fleet(ones, ones, ones, 0 * ones)


@dataclass(frozen=True)
class FakeEntryPoint:
    name: str
    loaded: object
    value: str = field(default="their_package:thing")

    def load(self) -> object:
        return self.loaded


def register(monkeypatch: pytest.MonkeyPatch, *entries: FakeEntryPoint) -> None:
    installed = {"driftscale.device_profiles": entries}
    monkeypatch.setattr("emulator.plugins.installed_entry_points", lambda: installed)
    monkeypatch.setitem(vars(PROFILES), "_entries", {})  # restored at the end
    del vars(PROFILES)["_entries"]  # so that entry points are read again


@pytest.mark.parametrize("registered", [OneSpeed(), OneSpeed, lambda: OneSpeed()])
def test_a_third_party_registers_a_profile_a_class_or_a_function(
    monkeypatch: pytest.MonkeyPatch, registered: object
) -> None:
    register(monkeypatch, FakeEntryPoint("one-speed", registered))
    assert "one-speed" in PROFILES.names()
    assert vars(load_profile("one-speed")) == vars(OneSpeed())


@pytest.mark.parametrize("registered", [3, lambda: "a string"])
def test_a_plug_in_that_gives_no_profile_is_named(
    monkeypatch: pytest.MonkeyPatch, registered: object
) -> None:
    register(monkeypatch, FakeEntryPoint("odd", registered))
    with pytest.raises(InputError, match=r"'odd' of entry-point group 'driftscale\.device_profiles' is a "):
        load_profile("odd")


def test_a_plug_in_that_needs_arguments_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, FakeEntryPoint("odd", lambda speed: OneSpeed()))
    with pytest.raises(
        ConfigurationError, match=r"'odd': is called without arguments, and needs some .*'speed'"
    ):
        load_profile("odd")


def test_a_plug_in_cannot_take_the_name_of_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, FakeEntryPoint("iot", OneSpeed()))
    with pytest.raises(ConfigurationError, match="'iot', which is taken"):
        PROFILES.names()


@pytest.mark.slow
def test_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, device_profiles; "
        "print([m for m in ('torch', 'sklearn', 'scipy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
