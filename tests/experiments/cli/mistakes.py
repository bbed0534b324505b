"""What users type, and the words that the answer must hold: a table for `test_mistakes.py`.

A row has the mistake, the command, the texts of the first configuration that are replaced, and the words. The
command reads mine.toml, which `driftscale new mine.toml` writes; beside it are data.csv, and runs/mine.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A mistake; `edits` are old and new texts of mine.toml in turn."""

    what: str
    command: str
    edits: tuple[str, ...]
    words: tuple[str, ...]


def _in_file(what: str, old: str, new: str, *words: str) -> Mistake:
    return Mistake(what, "check mine.toml", (old, new), words)


def _typed(command: str, *words: str) -> Mistake:
    return Mistake(command, command, (), words)


ARM = '[[arm]]                       # the first arm is the reference\nname = "global"'

IN_A_CONFIGURATION = (
    Mistake(
        "[arm.global] and others",
        "check mine.toml",
        (
            ARM,
            "[arm.global]",
            "[[arm]]   ",
            "[arm.prior]   ",
            "[[arm]]",
            "[arm.static]",
            "[[arm]]",
            "[arm.fielding]",
        ),
        ("arm: must be a list", "[[arm]] in double brackets"),
    ),
    Mistake(
        "[arm] twice",
        "check mine.toml",
        ("[[arm]]   ", "[arm]   ", "[[arm]]   ", "[arm]   "),
        ("line 53", "[arm]", "[[arm]] above each entry of a list"),
    ),
    _in_file("a range of seeds", "[0, 1, 2]", '"0..2"', "seeds = '0..2'", "a list", "[0, 1, 2]"),
    _in_file("a number of seeds", "[0, 1, 2]", "3", "seeds = 3", "as in [3]", "[0, 1, 2] are three seeds"),
    _in_file("a key at the top", "seeds =", "rounds = 80\nseeds =", "'rounds'", "round.rounds, in [round]?"),
    _in_file("a table in the plural", "[round]", "[rounds]", "'rounds'", "did you mean 'round'?"),
    _in_file(
        "lr", "learning_rate =", "lr =", "training: unknown key 'lr'", "did you mean training.learning_rate"
    ),
    _in_file(
        "lr of an arm",
        'name = "static"',
        'name = "static"\ntraining = { lr = 1 }',
        "arm.static.training: unknown key 'lr'",
        "did you mean 'learning_rate'?",
    ),
    _in_file("epochs", "local_steps = 10", "epochs = 1", "training", "'epochs'", "training.local_epochs"),
    _in_file(
        "a key of another table", "local_steps = 10", "participants = 9", "training", "round.participants"
    ),
    _in_file("a key of no table", "[trace]", '[trace]\nname = "a"', "trace", "'name'", "above all tables"),
    _in_file("device of [devices]", "profile =", "device =", "devices: unknown key 'device'", "profile"),
    _in_file("a width alone", "hidden = [32]", "hidden = 16", "training.model.hidden = 16", "as in [16]"),
    _in_file("widths as a text", "hidden = [32]", 'hidden = "16,8"', "hidden = '16,8'", "as in [16, 8]"),
    _in_file("a target alone", "targets = [0.6]", "targets = 0.6", "report.targets = 0.6", "as in [0.6]"),
    _in_file(
        "clients as a text", "clients = 60", 'clients = "60"', "trace.clients = '60'", "60, without quotes"
    ),
    _in_file(
        "a share of clients", "participants = 8", "participants = 0.1", "whole number", "of clients", "share"
    ),
    _in_file("hours as a text", "horizon_s = 24_000", 'horizon_s = "6.7h"', "'6.7h'", "of seconds", "24120"),
    _in_file("hours in a name", "horizon_s = 24_000", "horizon_h = 6.7", "'horizon_h'", "mean 'horizon_s'?"),
    _in_file("a target in percent", "[0.6]", "[60]", "report.targets.0 = 60", "above 0, at most 1"),
    _in_file(
        "optimizer", "[round]", 'optimizer = "adam"\n[round]', "training", "a part", "solver =", "[parts]"
    ),
    _in_file("momentum", "[round]", "momentum = 0.9\n[round]", "training", "solver =", "momentum = 0.9"),
    _in_file(
        "strategy", "[trace]", '[strategy]\nkind = "fedavg"\n[trace]', "'strategy'", "parts", "aggregator"
    ),
    _in_file(
        "a part at the top",
        "seeds =",
        'selector = "oort"\nseeds =',
        "'selector'",
        "parts.selector, in [parts]",
    ),
    _in_file("a model in capitals", 'kind = "mlp"', 'kind = "MLP"', "training.model", "'MLP'", "mean 'mlp'?"),
    _in_file(
        "FedAvg",
        '= "prior"\nb',
        '= "prior"\naggregator = "FedAvg"\nb',
        "arm.prior.aggregator",
        "mean 'fedavg'?",
    ),
    _in_file(
        "a solver as aggregator",
        "[parts]",
        '[parts]\naggregator = "fedprox"',
        "aggregator",
        'solver = ["fedprox", "sgd"]',
    ),
    _in_file(
        "the rate of an aggregator",
        "[parts]",
        '[parts]\naggregator = { kind = "fedadam", lr = 0.1 }',
        "parts.aggregator",
        "did you mean 'learning_rate'?",
    ),
    _in_file(
        "another tool's word for extends", 'name = "mine"', 'base = "digits"', "base", "mean extends, above"
    ),
    _in_file(
        "k-means", 'clusterer = "fielding"', 'clusterer = "kmeans"', "arm.fielding", "'kmeans'", "'static'"
    ),
    _in_file(
        "two arms of a name", 'name = "static"', 'name = "global"', "arm", "different name", "global, prior"
    ),
    _in_file(
        "a headline of no arm",
        '= "fielding"',
        '= "feilding"',
        "report.headline",
        "'feilding'",
        "static, fielding",
    ),
    _in_file(
        "a share in percent", "share = 0.9", "share = 90", "trace.drift.events.0.share = 90", "equal to 1"
    ),
    _in_file("more labels than there are", "labels_per_mix = 3", "labels_per_mix = 11", "= 11", "10 labels"),
    _in_file(
        "a number for hours", '"always"', "0.5", "devices.availability = 0.5", "a name", "always, diurnal"
    ),
    _in_file("a profile", '"smartphones"', '"smartphone"', "devices.profile", "mean 'smartphones'?"),
    _in_file(
        "a factor of 0", "model_factor = 3", "model_factor = 0", "devices.model_factor = 0", "greater than 0"
    ),
    _in_file("a deadline", 'kind = "fixed"', 'kind = "deadline"', "parts.pacing", "'fixed'", "duration_s"),
    _in_file(
        "over_commit below 1",
        "over_commit = 1.5",
        "over_commit = 0.5",
        "round.over_commit = 0.5",
        "equal to 1",
    ),
    _in_file("hear", '= "everyone"', '= "offline"', "round.hear = 'offline'", "'online', 'everyone'"),
    _in_file("a seed twice", "[0, 1, 2]", "[0, 0, 1]", "seeds", "only once"),
    _in_file("mnist", '"digits"', '"mnist"', "trace source 'mnist'", 'source = "idx", folder = "mnist"'),
    _in_file("cifar10", '"digits"', '"cifar10"', "trace source 'cifar10'", "driftscale traces build"),
    _in_file("device", "[round]", 'device = "cuda"\n[round]', "training: unknown key 'device'", "on the CPU"),
    _in_file("a width of 0", "hidden = [32]", "hidden = [0]", "hidden.0 = 0", "greater than or equal to 1"),
    _in_file(
        "a text for a number",
        "noise = 0.8",
        'noise = "0.8"',
        "trace.noise",
        "a number",
        "0.8, without quotes",
    ),
    _in_file("yes", "baseline = true", 'baseline = "yes"', "arm.prior.baseline", "as in true"),
    _in_file(
        "a list for a table", "[round]", "[[round]]", "round: must be a table", "[round] in single brackets"
    ),
    _in_file(
        "minutes", "duration_s = 300", 'duration_s = "5 min"', "parts.pacing.duration_s", "seconds", "300"
    ),
    _in_file("a part of all arms", 'kind = "fixed"', 'kind = "fixd"', "parts.pacing: unknown pacing 'fixd'"),
)
"""In mine.toml: parsed, and refused."""

NOT_TOML = (
    _in_file("percent", "= 0.05", "= 5%", "line 32", "learning_rate = 5%", "write 0.05"),
    _in_file("True", "= true   ", "= True   ", "line 39", "log_client_accuracy = True", "write true"),
    _in_file(
        "a colon", 'source = "digits"', 'source: "digits"', "line 8", 'source: "digits"', "= in place of :"
    ),
    _in_file(
        "an inline table of two lines", "[{ round", "[{\nround", "line 21", "events = [{", "on one line"
    ),
    _in_file("a decimal comma", "= 0.05", "= 0,05", "line 32", "learning_rate = 0,05", "write 0.05"),
    _in_file(
        "a text without quotes", '= "digits"', "= digits", "line 8", "source = digits", '"digits", in quotes'
    ),
    _in_file("typographic quotes", '= "digits"', "= “digits”", "line 8", "straight quotes"),
    _in_file("a path of Windows", '"smartphones"', '"C:\\phones.csv"', "line 24", "in single quotes"),
    _in_file("a range", "[0, 1, 2]", "0..2", "line 5", "seeds = 0..2", "write [0, 1, 2]"),
    _in_file("a key twice", "rounds = 80", "rounds = 80\nrounds = 8", "line 36", "each key once"),
    _in_file("None", "targets = [0.6]", "targets = None", "line 46", "targets = None", "left out"),
    _in_file("two signs", "rounds = 80", "rounds == 80", "line 35", "rounds == 80", "one ="),
)
"""In mine.toml: no TOML; the line is shown."""

TYPED = (
    _typed(
        "check mine.toml --set \"arm={name='global'}\"", "arm: must be a list", "[[arm]] in double brackets"
    ),
    _typed("run mine.toml --seed 3", "--seed", "did you mean --seeds?"),
    _typed("check mine.toml --format yaml", "--format", "'yaml'", "'table', 'json'"),
    _typed("runn mine.toml", "'runn'", "Did you mean 'run'?"),
    _typed("train mine.toml", "'train'", "did you mean driftscale run CONFIG?"),
    _typed(
        "check runs/mine", "runs/mine: is a run directory", "driftscale report runs/mine", "experiment.toml"
    ),
    _typed("check mine.toml --set arm.0.clusterer=single", "no arm is named '0'", "global, prior"),
    _typed("run", "Missing argument 'CONFIG'", "driftscale configs", "driftscale new mine.toml"),
    _typed("run mine.toml +round.rounds=3", "did you mean --set round.rounds=3?"),
    _typed("run mine", "mine: no such configuration", "did you mean mine.toml?"),
    _typed("run Digits", "Digits: no such configuration", "digits"),
    _typed("run mine.toml --jobs two", "--jobs 'two'", "1 to 1024, or auto"),
    _typed("run mine.toml --jobs 0", "--jobs '0'", "1 to 1024, or auto"),
    _typed("run mine.toml --set rounds=3", "unknown key 'rounds'", "did you mean round.rounds"),
    _typed("run mine.toml --set round.rounds 3", "(3)", "did you mean --set round.rounds=3?"),
    _typed(
        "run mine.toml round.rounds=3 training.batch_size=5",
        "--set round.rounds=3 --set training.batch_size=5?",
    ),
    _typed("run mine.toml --rounds 3", "--rounds", "did you mean --set round.rounds=3?"),
    _typed("run mine.toml --lr=0.1", "--lr", "did you mean --set training.learning_rate=0.1?"),
    _typed("run mine.toml --round.rounds 3", "--set round.rounds=3?"),
    _typed("run mine.toml --seeds 0 1 2", "did you mean --seeds 0,1,2?"),
    _typed("run mine.toml --set training.model.hidden=[16, 32]", "--set 'training.model.hidden=[16, 32]'?"),
    _typed("run mine.toml --gpu", "--gpu", "training is on the CPU"),
    _typed("run --config mine.toml", "--config", "the configuration is an argument"),
    _typed("run mine.toml --overwrite", "--overwrite", "did you mean --fresh?"),
    _typed("check mine.toml --set training.model.hidden=16", "hidden = 16", "as in [16]"),
    _typed("check mine.toml --set arm.fieldng.clusterer=single", "no arm is named 'fieldng'", "fielding"),
    _typed("check mine.toml --sweep training.lr=0.1,0.2", "--sweep training.lr", "training.learning_rate"),
    _typed("check mine.toml --sweep round.participants=1..5", "round.participants=1..5", "1,2,3,4,5"),
    _typed("check mine.toml --data /nope", "/nope: no such folder", "--data"),
    _typed("check mine.toml --set \"trace={source='file'}\"", "trace.folder: field required"),
    _typed("run mine.toml --out runs/mine", "runs of another configuration", "take another --out", "--fresh"),
    _typed("run runs/mine", "runs/mine: is a run directory", "driftscale report runs/mine"),
    _typed("run data.csv", "data.csv: is a table", "traces build table --root data.csv", "devices.profile"),
    _typed("view mine.toml", "mine.toml: no such run directory", "driftscale run mine.toml"),
    _typed("report runs/mine/global", "not a run directory", "did you mean runs/mine,"),
    _typed("compare runs/mine/global/seed-0 runs/mine", "not a run directory", "did you mean runs/mine,"),
    _typed("export runs/mine --to excel", "--to", "'excel'", "csv"),
    _typed("parts strategy", "kind of part 'strategy'", "a row of parts", "aggregator"),
    _typed("parts optimizer", "kind of part 'optimizer'", "did you mean 'solver'?"),
    _typed("configs nope", "nope", "driftscale configs"),
    _typed("new", "Missing argument 'FILE'", "mine.toml"),
    _typed("new mine.toml", "mine.toml: exists already"),
    _typed("new x.toml --like nope", "nope", "driftscale configs"),
    _typed("run mine.toml --seeds 0:5", "--seeds 0:5", "0..9", "0,3,7"),
    _typed("run mine.toml -j 2", "-j", "did you mean --jobs?"),
    _typed("check mine.toml -j 2", "No such option: -j (driftscale check --help)"),  # which has no --jobs
    _typed("check mine.toml --arms global", "driftscale run --arms plays some of them"),
    _typed("traces build csv --root data.csv --out t", "kind of data set 'csv'", "did you mean 'table'?"),
    _typed("traces build data.csv", "data.csv: KIND comes first", "traces build table --root data.csv"),
)
"""On the command line."""

TAKEN = (
    Mistake("a whole number with a point", "check mine.toml", ("clients = 60", "clients = 60.0"), ("ok",)),
    Mistake(
        "evaluations beyond the end",
        "check mine.toml",
        ("rounds = 80", "rounds = 80\nevaluate_every = 500"),
        ("round.evaluate_every = 500", "of 80 rounds", "lower it"),
    ),
    _typed("check mine.toml --seeds 3", "--seeds 3: seed 3 alone", "0..2 are 3 seeds"),
    _typed("parts selector oort", "utility"),
    _typed("check digits", "digits: taking the shipped configuration", "ok"),
    _typed("check digits.toml", "digits.toml: taking the shipped configuration", "ok"),
    _typed(
        "check experiments/configs/digits.toml", "not here; taking the shipped configuration digits", "ok"
    ),
    _typed("configs digits", "name"),
    _typed("-h", "Commands", "--version"),
    _typed("run -h", "Usage: driftscale run"),
    _typed("-V", "."),
    _typed("version", "--version"),
)
"""Not refused: what is written otherwise, and what is said about it."""
