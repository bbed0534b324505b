"""`driftscale` as a rank of torchrun: `python -m tests.reliability.stopping ROUND ARGUMENT...`.

Rank 0 stops itself (SIGSTOP) in round ROUND, unless torchrun has restarted it.
"""

from __future__ import annotations

import os
import sys

from experiments.cli import main
from tests.reliability.kills import stop_in_round

if __name__ == "__main__":
    number = int(sys.argv.pop(1))
    if os.environ["RANK"] == "0" and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        stop_in_round(number)
    main()
