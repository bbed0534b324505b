"""The text of cells with accuracies beside published ones, and with numbers of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.results.tables.cells import NOT_MEASURED, NOTHING, Cell

OUTSIDE = "outside is by more than two published standard deviations"


def mean_and_std(cell: Mapping[str, Any]) -> str:
    """The mean ± the standard deviation, or the mean alone if there is none.

    >>> mean_and_std({"mean": 97.5312, "std": 0.128}), mean_and_std({"mean": 86.1, "std": None})
    ('97.53 ± 0.13', '86.10')
    """
    mean = f"{cell['mean']:,.2f}"
    return mean if cell["std"] is None else f"{mean} ± {cell['std']:,.2f}"


def compared(cell: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """(ours, published, difference) as text, of a cell of `published.beside_published`.

    The last two are empty if there is no published value; ours is "n/a" if the cell is None. A difference of
    more than two published standard deviations is marked as outside.

    >>> published = {"mean": 97.4, "std": 0.1}
    >>> compared({"mean": 97.7, "std": 0.1, "published": published, "difference": 0.3, "outside": True})
    ('97.70 ± 0.10', '97.40 ± 0.10', '+0.30 outside')
    """
    if cell is None:
        return NOT_MEASURED, "", ""
    if cell["published"] is None:
        return mean_and_std(cell), "", ""
    difference = f"{round(cell['difference'], 2) + 0.0:+.2f}"  # no negative zero
    outside = " outside" if cell["outside"] else ""
    return mean_and_std(cell), mean_and_std(cell["published"]), difference + outside


def unmarked(cell: Mapping[str, Any] | None) -> str:
    """The figures of such a cell without the marked seeds, as text; empty if no seed is marked.

    >>> unmarked({"mean": 90.0, "std": 8.0, "unmarked": {"mean": 97.5, "std": 0.1}})
    'without marked seeds 97.50 ± 0.10'
    """
    apart = None if cell is None else cell["unmarked"]
    return "" if apart is None else f"without marked seeds {mean_and_std(apart)}"


def beside_paper(cell: Mapping[str, Any] | None) -> Cell:
    """Ours; below it ours without marked seeds, and the published value with the difference, if known.

    A dash if it was not measured.
    """
    if cell is None:
        return Cell(NOTHING)
    ours, published, difference = compared(cell)
    return Cell(ours, unmarked(cell), f"{published}, {difference}" if published else "")


def agreement_sentence(where: str, found: Mapping[str, Any]) -> str:
    """How the figures of an experiment agree with published ones (`published.agreement`); may be empty.

    >>> found = {"methods": 5, "inside": 3, "outside": ["cfl"], "rank_correlation": 0.9}
    >>> agreement_sentence("In X", found)
    "In X, within two published standard deviations: 3 of 4 methods; Spearman's rank correlation 0.90 over 5."
    """
    judged = found["inside"] + len(found["outside"])
    parts = []
    if judged:
        parts.append(f"within two published standard deviations: {found['inside']} of {judged} methods")
    if found["rank_correlation"] is not None:
        parts.append(f"Spearman's rank correlation {found['rank_correlation']:.2f} over {found['methods']}")
    return f"{where}, {'; '.join(parts)}." if parts else ""


def scored_steps(steps: int | None, scored: int | None) -> str:
    """Text that only some data steps have an evaluation; empty if all have one, or if that is unknown.

    >>> scored_steps(10, 6), scored_steps(10, 10), scored_steps(10, None)
    ('6 of 10 data steps', '', '')
    """
    is_partial = steps is not None and scored is not None and scored < steps
    return f"{scored} of {steps} data steps" if is_partial else ""


def models(sent: Mapping[str, Any] | None, relative: Mapping[str, Any] | None) -> str:
    """The number of models sent, with the ratio to the reference arm in brackets if there is one.

    >>> models({"mean": 20_000.0, "std": 0.0}, {"mean": 1.0, "std": 0.0}), models(None, None)
    ('20,000 (1.00x)', 'n/a')
    """
    if sent is None:
        return NOT_MEASURED
    times = "" if relative is None else f" ({relative['mean']:.2f}x)"
    return f"{sent['mean']:,.0f}{times}"
