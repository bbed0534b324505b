"""A package that ships small configurations, in place of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from experiments import shipped
from tests.experiments.small import small_table

ABOUT = "# A small one. Of twelve clients.\n"


def ship(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Path:
    """Ship `small`, `few/alpha` and `few/beta` from `experiments/configs` in `folder`; returns that folder.

    `changes` are those of all three, see `small_table`.
    """
    configs = folder.resolve() / "experiments" / "configs"
    (configs / "few").mkdir(parents=True)
    for name in ("small", "few/alpha", "few/beta"):
        table = small_table(name=name.replace("/", "-"), **changes)
        (configs / f"{name}.toml").write_text(ABOUT + tomli_w.dumps(table), encoding="utf-8")
    monkeypatch.setattr(shipped, "CONFIGS", configs)
    for cached in (shipped._files, shipped.shipped_folders):
        monkeypatch.setattr(shipped, cached.__name__, cached.__wrapped__)
    return configs
