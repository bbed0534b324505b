"""`python -m benchmarks`, in a checkout."""

from experiments.cli import main


def program() -> None:
    """Parse `sys.argv` and measure; ends with SystemExit, as typer does."""
    from benchmarks.command import app

    app(prog_name="python -m benchmarks")


if __name__ == "__main__":
    main(program)
