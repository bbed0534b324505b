from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from device_profiles.mixture import MixtureProfile, read_mixture
from emulator.errors import DataFileError

Generators = Callable[[], np.random.Generator]

ABOUT = """\
reference_model = "LeNet"
reference_flops = 8e5
source = "a bench"
"""
ONE = '[[class]]\nname = "a"\nshare = 1\n'
LINKS = "download_bytes_per_s = 2000\nupload_bytes_per_s = 1000\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "mix.toml"
    path.write_text(text)
    return path


def one_class(folder: Path, seconds: str) -> MixtureProfile:
    return read_mixture(write(folder, ABOUT + ONE + LINKS + f"seconds_per_sample = {seconds}\n"))


def test_constants_are_every_device(tmp_path: Path, generator: Generators) -> None:
    profile = one_class(tmp_path, "0.25")
    fleet = profile.draw(3, generator())
    assert (profile.name, profile.reference_flops, profile.counts) == ("mix", 8e5, {"classes": 1})
    assert fleet.seconds_per_sample.tolist() == [0.25] * 3
    assert fleet.download_bytes_per_s.tolist() == [2000] * 3
    assert fleet.latency_s.tolist() == [0] * 3


def test_quantiles_are_joined_by_straight_lines_of_logarithms(tmp_path: Path, generator: Generators) -> None:
    fleet = one_class(tmp_path, "{ quantiles = [[0, 1], [0.5, 4], [1, 16]] }").draw(100_000, generator())
    # one line in the logarithm: value = 16 ** probability
    drawn = fleet.quantiles([0, 0.25, 0.5, 0.75, 1])["seconds_per_sample"]
    assert drawn == pytest.approx([1, 2, 4, 8, 16], rel=0.03)
    assert fleet.seconds_per_sample.min() >= 1
    assert fleet.seconds_per_sample.max() <= 16


def test_discrete_values_are_drawn_exactly_and_by_weight(tmp_path: Path, generator: Generators) -> None:
    fleet = one_class(tmp_path, "{ discrete = [[0.1, 1], [0.7, 3]] }").draw(40_000, generator())
    values, counts = np.unique(fleet.seconds_per_sample, return_counts=True)
    assert values.tolist() == [0.1, 0.7]
    assert counts / 40_000 == pytest.approx([0.25, 0.75], abs=0.01)


def test_a_lognormal_has_its_median_and_spread_and_its_clip(tmp_path: Path, generator: Generators) -> None:
    fleet = one_class(tmp_path, "{ lognormal = { median = 2, sigma = 0.5 } }").draw(100_000, generator())
    logs = np.log(fleet.seconds_per_sample)
    assert np.exp(np.median(logs)) == pytest.approx(2, rel=0.01)
    assert logs.std() == pytest.approx(0.5, rel=0.01)
    text = "{ lognormal = { median = 2, sigma = 0.5, clip = [1.5, 3] } }"
    clipped = one_class(tmp_path, text).draw(1000, generator()).seconds_per_sample
    assert (clipped.min(), clipped.max()) == (1.5, 3)


def test_one_bandwidth_is_the_same_both_ways_for_a_device(tmp_path: Path, generator: Generators) -> None:
    text = "compute_ms_per_sample = 100\nbandwidth_kibit_per_s = { discrete = [[1, 1], [1000, 1]] }\n"
    fleet = read_mixture(write(tmp_path, ABOUT + ONE + text)).draw(100, generator())
    assert set(fleet.download_bytes_per_s) == {128.0, 128_000.0}
    assert (fleet.download_bytes_per_s == fleet.upload_bytes_per_s).all()
    assert fleet.seconds_per_sample == pytest.approx(0.3)


TWO = (
    '[[class]]\nname = "fast"\nshare = 0.9\nseconds_per_sample = 1\n' + LINKS,
    '[[class]]\nname = "slow"\nshare = 0.1\nseconds_per_sample = { discrete = [[5, 1], [6, 2]] }\n' + LINKS,
)


def test_a_column_may_be_given_in_milliseconds_and_megabits(tmp_path: Path, generator: Generators) -> None:
    text = "ms_per_sample = { discrete = [[9, 1], [41, 1]] }\nbandwidth_mbps = 8\nlatency_ms = 30\n"
    fleet = read_mixture(write(tmp_path, ABOUT + ONE + text)).draw(100, generator())
    assert set(fleet.seconds_per_sample) == {0.009, 0.041}
    assert set(fleet.download_bytes_per_s) == set(fleet.upload_bytes_per_s) == {1e6}
    assert set(fleet.latency_s) == {0.03}


def test_classes_have_their_shares(tmp_path: Path, generator: Generators) -> None:
    fleet = read_mixture(write(tmp_path, ABOUT + "".join(TWO))).draw(40_000, generator())
    assert (fleet.seconds_per_sample == 1).mean() == pytest.approx(0.9, abs=0.01)


def test_the_order_of_classes_keys_and_values_changes_no_fleet(tmp_path: Path, generator: Generators) -> None:
    fleet = read_mixture(write(tmp_path, ABOUT + "".join(TWO))).draw(500, generator())
    slow = "[[class]]\nupload_bytes_per_s = 1000\nseconds_per_sample = { discrete = [[6, 2], [5, 1]] }\n"
    turned = slow + 'share = 0.1\ndownload_bytes_per_s = 2000\nname = "slow"\n' + TWO[0]
    turned_fleet = read_mixture(write(tmp_path, ABOUT + turned)).draw(500, generator())
    assert turned_fleet.seconds_per_sample.tolist() == fleet.seconds_per_sample.tolist()


def test_distributions_may_lie_in_a_file_beside_the_profile(tmp_path: Path, generator: Generators) -> None:
    (tmp_path / "models.csv").write_text("weight,value\n1,0.7\n3,0.1\n")
    (tmp_path / "speeds.csv").write_text("quantile,value\n0,10\n1,10\n")
    text = (
        'seconds_per_sample = { discrete = "models.csv" }\n'
        'download_bytes_per_s = { quantiles = "speeds.csv" }\nupload_kbps = 8\n'
    )
    fleet = read_mixture(write(tmp_path, ABOUT + ONE + text)).draw(1000, generator())
    assert set(fleet.seconds_per_sample) == {0.1, 0.7}
    assert fleet.download_bytes_per_s == pytest.approx(10)
    assert set(fleet.upload_bytes_per_s) == {1000.0}


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ("-1", "class[0].seconds_per_sample: Input should be greater than or equal to 0 (it is -1)"),
        ("0", "class[0]: seconds_per_sample = 0 must be greater than 0"),
        ("nan", "class[0].seconds_per_sample: Input should be a finite number"),
        ("true", "class[0].seconds_per_sample: must be a number, or a table with one of quantiles, discrete"),
        ("1e19", "class[0].seconds_per_sample: Input should be less than or equal to 1000000000000000000"),
        ("{ lognormal = { median = 1, sigma = true } }", "sigma: Input should be a valid number"),
        ('{ discrete = [["1", 2]] }', "discrete[0][0]: Input should be a valid number"),
        ('"fast"', "must be a number, or a table with one of quantiles, discrete, lognormal (it is 'fast')"),
        ("{ normal = 3 }", "class[0].seconds_per_sample: must be a number, or a table with one of"),
        (
            "{ quantiles = [] }",
            "seconds_per_sample.quantiles: the probabilities of a quantile table must run",
        ),
        ("{ quantiles = [[0, 1], [0.9, 2]] }", "must run from 0 to 1"),
        ("{ quantiles = [[0, 1], [0.5, 3], [0.5, 4], [1, 5]] }", "row 3: (0.5, 4) follows (0.5, 3)"),
        ("{ quantiles = [[0, 1], [0.5, 3], [1, 2]] }", "row 3: (1, 2) follows (0.5, 3); probabilities must"),
        ("{ quantiles = [[0, 0], [1, 2]] }", "row 1: value 0 must be greater than 0"),
        ("{ quantiles = [[0, 1, 7], [1, 2]] }", "class[0].seconds_per_sample.quantiles[0]"),
        ('{ quantiles = "../other.csv" }', "'../other.csv' must lie inside"),
        ('{ quantiles = "none.csv" }', "none.csv: no such file"),
        ('{ quantiles = "wrong.csv" }', "wrong.csv: unknown column 'mean'; known are quantile, value"),
        ("{ discrete = [] }", "discrete: a discrete distribution needs at least one (value, weight)"),
        ("{ discrete = [[1, 2], [3, 0]] }", "row 2: weight 0 of value 3 must be greater than 0"),
        (
            "{ discrete = [[1, 2], [-3, 1]] }",
            "seconds_per_sample.discrete[1][0]: Input should be greater than or equal to 0",
        ),
        ("{ discrete = [[1, 2]], clip = [0, 1] }", "unknown key 'clip'"),
        ("{ lognormal = { median = 0, sigma = 1 } }", "lognormal.median: Input should be greater than 0"),
        ("{ lognormal = { median = 1 } }", "lognormal.sigma: Field required"),
        (
            "{ lognormal = { median = 1, sigma = 1, clip = [2, 3] } }",
            "clip [2.0, 3.0] must be above 0 and contain",
        ),
    ],
)
def test_a_distribution_that_breaks_a_rule_is_refused_by_file_and_key(
    tmp_path: Path, seconds: str, message: str
) -> None:
    (tmp_path / "wrong.csv").write_text("quantile,mean\n0,1\n")
    with pytest.raises(DataFileError) as error:
        one_class(tmp_path, seconds)
    assert str(error.value).startswith(str(tmp_path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


FULL = ONE + LINKS + "seconds_per_sample = 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 3", "cannot be read as TOML"),
        (FULL, "reference_model: Field required"),
        (ABOUT, "class: Field required"),
        (ABOUT + "class = []\n", "class: Tuple should have at least 1 item"),
        (
            ABOUT.replace("8e5", "0") + FULL,
            "reference_flops: Input should be greater than or equal to 1 (it is 0)",
        ),
        (ABOUT + 'sauce = "x"\n' + FULL, "unknown key 'sauce'"),
        (
            ABOUT + FULL + "latncy_s = 1\n",
            "class[0]: unknown key 'latncy_s'; known are bandwidth_KiB_per_s",
        ),
        (ABOUT + FULL + "latncy_s = 1\n", "did you mean 'latency_s'?"),
        (ABOUT + FULL + "latency_s = -1\n", "class[0].latency_s: Input should be greater than or equal to 0"),
        (ABOUT + FULL + "upload_kbps = 1\n", "'upload_bytes_per_s' and 'upload_kbps' both give"),
        (
            ABOUT + ONE + LINKS,
            "column 'seconds_per_sample' is missing, and so is each alias of it: 'comp",
        ),
        (
            ABOUT + FULL.replace("share = 1", "share = 0.5"),
            "class: the shares sum to 0.5; they must sum to 1",
        ),
        (ABOUT + FULL.replace("share = 1", "share = -1"), "class[0].share: Input should be greater than 0"),
        (ABOUT + 2 * FULL.replace("share = 1", "share = 0.5"), "2 classes have the name 'a'"),
    ],
)
def test_a_profile_that_breaks_a_rule_is_refused_by_file_and_key(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError) as error:
        read_mixture(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_shares_may_miss_one_by_rounding(tmp_path: Path, generator: Generators) -> None:
    thirds = "".join(
        FULL.replace('"a"', f'"{name}"').replace("share = 1", "share = 0.3333333") for name in "abc"
    )
    assert len(read_mixture(write(tmp_path, ABOUT + thirds)).draw(1000, generator())) == 1000
