"""`python -m experiments.cli`, for launchers such as torchrun that take a module."""

from experiments.cli import main

if __name__ == "__main__":
    main()
