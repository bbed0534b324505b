"""The array types every package speaks of. Shapes are given where an array is declared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_IDS: Ints = np.zeros(0, dtype=np.int64)
