"""`python -m driftscale`: the command of that name."""

from experiments.cli import main

if __name__ == "__main__":
    main()
