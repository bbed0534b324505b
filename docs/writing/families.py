"""The families of shipped configurations: their headings in the gallery, and the picture of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Family:
    """A folder of shipped configurations by its heading, and the accuracies that its picture shows.

    Attributes:
        heading: Its heading in the gallery.
        configuration: The one whose accuracies are drawn.
        arms: Those that are drawn, at most six, with the strongest rival among them.
        alt: The picture in words.
        options: How it was played, besides its own settings.
        is_personal: Whether accuracies are of what clients use, be it personal or served.
    """

    heading: str
    configuration: str
    arms: Sequence[str]
    alt: str
    options: Sequence[str] = ()
    is_personal: bool = False

    @property
    def of_what(self) -> str:
        """Whether lines are means over seeds, or of a single one."""
        options = dict(pairwise(self.options))
        seeds = options.get("--seeds", "")
        return f"of seed {seeds} alone" if seeds.isdecimal() else "means over seeds"

    @property
    def name(self) -> str:
        """The name of its picture."""
        return self.configuration.replace("/", "-")


FAMILIES: Mapping[str, Family] = {
    "": Family(
        "Single experiments",
        "swap",
        ("global", "tuned-100", "relabelled", "fielding", "fielding-relabelled", "oracle"),
        "Labels change their meaning for half of the clients at a time, twice. The oracle, told whose, "
        "stays at 94 percent; one model falls from 94 to 45, one that clients tune to 74. One model whose "
        "predictions clients relabel falls to 76, Fielding to 78, and both together to 85.",
    ),
    "atlas": Family(
        "The atlas",
        "atlas/rotation",
        ("fedavg", "fielding-gradients", "ifca", "context", "transformed", "oracle"),
        "Half-way images turn in three of four groups. A client that tries eight turns stays at 95 percent, "
        "the oracle falls to 87 and rises to 94. IFCA falls from 95 to 66 and rises to 93, a model with a "
        "context from 96 to 67 and to 89, Fielding by gradients from 94 to 78 and to 89, one model from 96 "
        "to 66 and to 87.",
        ("--seeds", "0..2", "--arms", "fedavg,fielding-gradients,ifca,context,transformed,oracle"),
    ),
    "dao": Family(
        "Detect-Adapt-Overcome",
        "dao/sudden",
        ("fedavg", "dao", "relabelled"),
        "After ten minutes two pairs of labels swap at a sixth of the clients. One model falls from 97 to 91 "
        "percent; Detect-Adapt-Overcome falls to 95 and is level from minute 17 with one model whose outputs "
        "clients relabel, which rises throughout, to 98.",
        ("--seeds", "42", "--arms", "fedavg,dao,relabelled", "--until", "25"),
    ),
    "drift": Family(
        "Kinds of drift",
        "drift/groups",
        ("global", "wide-tuned", "relabelled", "ifca", "fielding", "oracle"),
        "Images turn by group. The oracle stays above 90 percent, IFCA, which is told the number of models, "
        "falls to 85; a wider model that each client tunes is above Fielding, and both are above one model.",
    ),
    "feddrift": Family(
        "FedDrift",
        "feddrift/sine-2",
        ("oblivious", "window", "ifca-t", "feddrift-eager", "feddrift", "oracle"),
        "Clients change to reversed labels one by one, and back. FedDrift, FedDrift-Eager and IFCA "
        "are level with the oracle throughout, between 69 and 99 percent. One model on a window of data "
        "falls to 43 and recovers later; one model on all data falls to 2.",
        ("--seeds", "0..2", "--arms", "oblivious,window,ifca-t,feddrift-eager,feddrift,oracle"),
    ),
    "fielding": Family(
        "Fielding",
        "fielding/figure-04-rivals-digits",
        ("global", "prior", "alone", "fielding", "auxo", "flexcfl"),
        "Half-way nine clients in ten move to other label mixes. Fielding and one model whose clients use "
        "their own label counts fall from 74 to 67 and 70 percent and recover; the latter ends higher. Auxo "
        "and FlexCFL fall to the level of one model and stay there.",
    ),
    "flash": Family(
        "FLASH",
        "flash/fashion-sudden",
        ("fedavg", "fedavg-all", "fedyogi", "flash"),
        "Half-way all clients swap labels. Four ways of averaging one model fall from 80 percent to between "
        "66 and 73, and are level again ten hours later. None of them knows of the swap.",
        ("--seeds", "0"),
    ),
    "personal": Family(
        "Personalisation",
        "personal/digits",
        ("fedavg", "tuned", "alone", "prior", "ditto", "fielding"),
        "Half-way nine phones in ten move to other label mixes. Fielding, and one model that clients tune or "
        "correct by their own label counts, fall from 74 to between 64 and 68 percent and recover to 70. "
        "Clients alone fall from 70 to 53 and recover too; personal models of Ditto fall from 65 to 39 and "
        "rise to 54, above one model.",
        is_personal=True,
    ),
    "phones": Family(
        "The atlas, on phones that come and go",
        "phones/mass",
        ("fedavg", "fedavg+prior", "fedavg+tuned", "fielding-labels", "fielding-labels+prior", "fedper"),
        "Half-way nine phones in ten move to other label mixes. Fielding with a prior falls from 69 to 57 "
        "percent and rises to 66, without one from 69 to 55 and to 64; one model with a prior, or tuned, "
        "falls from 69 to 62 and rises to 66. One model alone has 45 to 49, own last layers 31 to 49.",
        (
            "--seeds",
            "0..2",
            "--arms",
            "fedavg,fedavg+prior,fedavg+tuned,fielding-labels,fielding-labels+prior,fedper",
        ),
        is_personal=True,
    ),
    "regression": Family(
        "Numbers",
        "regression/power",
        ("global", "tuned", "fedper", "ifca-16", "fielding", "oracle"),
        "After thirteen minutes the line of targets shifts in three of four groups. The oracle stays above 50"
        " percent within tolerance and rises to 78; IFCA of 16 models falls to 41 and rises to 74. One model "
        "falls from 53 to 14, one that clients tune to 48, Fielding by gradients to 36.",
        is_personal=True,
    ),
    "text": Family(
        "Texts",
        "text/authors",
        ("global", "wide", "tuned", "ifca-8", "fielding", "fielding-gradient"),
        "Clients go over to other authors all along. Fielding, told authors, stays at 38 to 40 percent of "
        "tokens right, Fielding by gradients at 37 to 38; IFCA of eight models rises from 29 to 36, a model "
        "that clients tune from 34 to 35, one model and a wide one from 28 to 34.",
    ),
}
"""By folder of `experiments/configs/`."""
