"""What closed rounds were waiting for: bars, sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.results.drawing.menus import add_list
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.figures.figures import blank_figure, verbatim
from experiments.results.statistics.visit_columns import NO_DEVICE
from experiments.results.statistics.waiting import BETWEEN, COMPONENTS, VISITS, Waiting
from experiments.results.tables.closers import Closer
from experiments.results.tables.columns import TextTable
from experiments.results.tables.formats import Cell, Scale, time_scale, time_unit

STYLES = {
    "before dispatch": ("#9aa5b1", ""),
    "requests": ("#CC79A7", "x"),
    "download": ("#56B4E9", "/"),
    "compute": ("#E69F00", ""),
    "upload": ("#009E73", "\\"),
    "drop-out": ("#D55E00", "."),
    "deadline": ("#332288", "-"),
    "visits": ("#0072B2", ""),
    "between rounds": ("#DDCC77", "|"),
}
"""The colour and the pattern of each component."""

PATTERN = {"fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.55)", "size": 5, "solidity": 0.25}
"""How patterns lie over their colours."""

MOST_NAMED_ARMS = 4
"""With more arms, the sentence names only those with the shortest and the longest rounds."""


@dataclass(frozen=True)
class ArmWaiting:
    """What the rounds of an arm waited for, in virtual seconds, and how many rounds each of its seeds closed.

    `seconds` has the sums over rounds of each component, a mean over seeds.
    """

    arm: str
    rounds: float  # mean over seeds
    seconds: dict[str, float]

    @classmethod
    def of_runs(cls, arm: str, runs: Sequence[Waiting]) -> ArmWaiting:
        """The means over `runs`, one for each seed; at least one."""
        totals = [run.totals_s for run in runs]
        return cls(
            arm,
            float(np.mean([len(run.round) for run in runs])),
            {name: float(np.mean([total[name] for total in totals])) for name in (*COMPONENTS, BETWEEN)},
        )

    @property
    def length_s(self) -> float:
        """The mean length of a round, from its opening to its end."""
        return sum(self.seconds[name] for name in COMPONENTS) / max(self.rounds, 1.0)

    def share(self, component: str) -> float:
        """The share of a component of the length of rounds."""
        total_s = sum(self.seconds[name] for name in COMPONENTS)
        return self.seconds[component] / total_s if total_s else 0.0


def waiting_figure(arms: Sequence[ArmWaiting]) -> PlainFigure:
    """What rounds waited for: a stacked bar per arm, per round or summed up to the horizon."""
    per_round = [
        {name: seconds / max(arm.rounds, 1.0) for name, seconds in arm.seconds.items()} for arm in arms
    ]
    views = [_view("per round (mean)", per_round), _view("all rounds (sum)", [arm.seconds for arm in arms])]
    shown = _shown(arms)
    figure = blank_figure(150 + 40 * len(arms), x_title=views[0].title, y_title="")
    for name, x in zip(shown, views[0].columns(shown), strict=True):
        colour, pattern = STYLES[name]
        figure.add_bar(
            x=x,
            y=[verbatim(arm.arm) for arm in arms],
            name=name,
            orientation="h",
            marker={"color": colour, "pattern": {"shape": pattern, **PATTERN}},
            hovertemplate=f"%{{y}}: {name} %{{x:.3g}}<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    buttons = [
        {
            "label": view.label,
            "method": "update",
            "args": [{"x": view.columns(shown)}, {"xaxis.title.text": view.title}],
        }
        for view in views
    ]
    add_list(figure, buttons)
    return figure


def lengths_sentence(arms: Sequence[ArmWaiting]) -> str:
    """How long rounds were and what they consisted of; of many arms, the shortest and the longest rounds.

    >>> seconds = dict.fromkeys((*COMPONENTS, BETWEEN), 0.0) | {"compute": 90.0, "upload": 10.0}
    >>> lengths_sentence([ArmWaiting("global", 10.0, seconds)])
    'Mean length of a round: global 10.0 s (compute 90 %, upload 10 %).'
    """
    if not arms:
        return ""
    named = list(arms)
    if len(named) > MOST_NAMED_ARMS:
        named = [_shortest(arms), _longest(arms)]
    scale = time_scale(max(arm.length_s for arm in named))
    parts = []
    for arm in named:
        shares = sorted(((arm.share(name), name) for name in COMPONENTS), reverse=True)
        parts.append(
            f"{arm.arm} {scale(arm.length_s)} ("
            + ", ".join(f"{name} {100 * share:.0f} %" for share, name in shares if share >= 0.005)
            + ")"
        )
    text = f"Mean length of a round: {'; '.join(parts)}."
    if len(named) < len(arms):
        text = f"Shortest and longest mean round of {len(arms)} arms: {'; '.join(parts)}."
    lengths = [arm.length_s for arm in arms]
    if max(lengths) > 1.1 * min(lengths):
        text += (
            f" Rounds of {_longest(arms).arm} are {max(lengths) / max(min(lengths), 1e-9):.2g} times as "
            "long as the shortest: in the same virtual time the arm makes fewer server steps, which counts "
            "in every time to accuracy."
        )
    return text


def lengths_table(arms: Sequence[ArmWaiting]) -> TextTable:
    """A row for each arm: its rounds, their mean length, and the share of each component that occurs."""
    shown = [name for name in _shown(arms) if name != BETWEEN]
    scale = time_scale(max((arm.length_s for arm in arms), default=0.0))
    rows = [
        (
            arm.arm,
            [
                Cell(f"{arm.rounds:,.4g}"),
                Cell(scale(arm.length_s)),
                *(Cell(f"{100 * arm.share(name):.1f} %") for name in shown),
            ],
        )
        for arm in arms
    ]
    return TextTable(["rounds", "mean length", *shown], rows)


def closers_table(rows: Sequence[tuple[str, Closer]]) -> TextTable:
    """A row for each (arm, client): how many rounds the client closed, and how slow its device is."""
    has_device = any(closer.device != NO_DEVICE for _, closer in rows)
    slowness = Scale(1, "x", None)
    scale = time_scale(max((closer.waited_s / closer.rounds for _, closer in rows), default=0.0))
    return TextTable(
        [
            *("seed", "client"),
            *(["device row"] if has_device else []),
            *("rounds closed", "of all", "mean wait", "compute", "download", "upload"),
        ],
        [
            (
                arm,
                [
                    Cell(str(closer.seed)),
                    Cell(str(closer.client)),
                    *([Cell(str(closer.device))] if has_device else []),
                    Cell(f"{closer.rounds:,}"),
                    Cell(f"{100 * closer.share:.1f} %"),
                    Cell(scale(closer.waited_s / closer.rounds)),
                    *(
                        Cell("n/a" if value is None else slowness(value))
                        for value in (
                            closer.compute_slowness,
                            closer.download_slowness,
                            closer.upload_slowness,
                        )
                    ),
                ],
            )
            for arm, closer in rows
        ],
    )


@dataclass(frozen=True)
class _View:
    """One way to draw the bars: its label in the list, its axis title, and the values of each arm."""

    label: str
    title: str
    values: list[dict[str, float]]

    def columns(self, shown: Sequence[str]) -> list[list[float]]:
        return [[float(f"{row[name]:.5g}") for row in self.values] for name in shown]


def _view(label: str, seconds: Sequence[dict[str, float]]) -> _View:
    divisor, unit = time_unit(max((sum(row.values()) for row in seconds), default=0.0))
    return _View(
        label,
        f"virtual time {label} ({unit})",
        [{name: value / divisor for name, value in row.items()} for row in seconds],
    )


def _shown(arms: Sequence[ArmWaiting]) -> list[str]:
    """The components that occur, in order of time; the phases always, unless visits were not recorded."""
    return [name for name in (*COMPONENTS, BETWEEN) if any(arm.seconds[name] > 0 for arm in arms)]


def _shortest(arms: Sequence[ArmWaiting]) -> ArmWaiting:
    """The arm with the shortest mean round; of equals, the first."""
    return min(arms, key=lambda arm: arm.length_s)


def _longest(arms: Sequence[ArmWaiting]) -> ArmWaiting:
    """The arm with the longest mean round; of equals, the first."""
    return max(arms, key=lambda arm: arm.length_s)


def are_unrecorded(arms: Sequence[ArmWaiting]) -> bool:
    """Whether visits of some arm were not recorded."""
    return any(arm.seconds[VISITS] > 0 for arm in arms)
