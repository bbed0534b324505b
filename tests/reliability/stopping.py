"""`driftscale` by ranks of which the first stops itself, until it is told to go on, in a round:
`python -m tests.reliability.stopping ROUND ARGUMENT...`. One that torchrun has started again does not.
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
