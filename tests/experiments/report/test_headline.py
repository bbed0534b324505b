from experiments.report.figures import Arm
from experiments.report.headline import drift_sentence, sentences
from experiments.summary import summarise
from tests.experiments.synthetic_runs import a_drifting_run, a_run


def headline(runs, target=None):
    """The sentences for runs of "global" and others, with accuracies as they are logged."""
    summary = summarise(runs, name="x", window=1, reference_arm="global", target=target)
    arms = [Arm(name, [], summary["arms"][name], place) for place, name in enumerate(summary["arms"])]
    return sentences(arms, target)


GLOBAL = [a_run("global", seed, [0.1, 0.2, 0.3, 0.5]) for seed in (0, 1)]


def test_a_clear_win_is_said_plainly():
    fielding = [a_run("fielding", seed, [0.4, 0.5, 0.5, 0.6]) for seed in (0, 1)]
    assert headline(GLOBAL + fielding) == [
        "fielding reaches global's final accuracy (50.0 %) 2.00x [2.00, 2.00] sooner "
        "and ends 10.0 pp higher than global [10.0, 10.0]."
    ]


def test_a_loss_is_said_as_plainly():
    fast = [a_run("global", seed, [0.5, 0.5, 0.5, 0.5]) for seed in (0, 1)]
    slow = [a_run("slow", seed, [0.4, 0.4, 0.4, 0.5]) for seed in (0, 1)]
    assert headline(fast + slow) == [
        "slow takes 4.00x [4.00, 4.00] as long to reach global's final accuracy (50.0 %) "
        "and ends neither measurably higher nor lower than global (+0.0 pp [+0.0, +0.0])."
    ]


def test_an_interval_around_no_difference_claims_none():
    other = [a_run("other", 0, [0.5, 0.5, 0.5, 0.6]), a_run("other", 1, [0.1, 0.2, 0.2, 0.5])]
    (said,) = headline(GLOBAL + other)
    assert "reaches global's final accuracy (50.0 %) neither measurably sooner nor later" in said
    assert "ends neither measurably higher nor lower than global (+5.0 pp [-58.5, +68.5])" in said


def test_a_censored_seed_is_said():
    other = [a_run("other", 0, [0.5, 0.5, 0.5, 0.5]), a_run("other", 1, [0.1, 0.2, 0.2, 0.4])]
    (said,) = headline(GLOBAL + other)
    assert "reaches global's final accuracy (50.0 %) in 1 of 2 seeds (speed-up 2.00x" in said
    assert ", censored)" in said


def test_an_arm_that_never_gets_there_gets_no_speed_up():
    other = [a_run("other", seed, [0.1, 0.2, 0.2, 0.4]) for seed in (0, 1)]
    assert headline(GLOBAL + other) == [
        "other never reaches global's final accuracy (50.0 %) in any of 2 seeds "
        "and ends 10.0 pp lower than global [10.0, 10.0]."
    ]


def test_a_censored_reference_makes_the_speed_up_a_lower_bound():
    other = [a_run("other", seed, [0.4, 0.6, 0.6, 0.6]) for seed in (0, 1)]
    (said,) = headline(GLOBAL + other, target=0.6)
    assert said.startswith(
        "other reaches the target of 60.0 %, which global does not in every seed (speed-up at least 2.00x"
    )


def test_one_seed_is_said_to_have_no_interval():
    assert headline([GLOBAL[0], a_run("other", 0, [0.1, 0.6, 0.6, 0.6])]) == [
        "other reaches global's final accuracy (50.0 %) 2.00x sooner "
        "and ends 10.0 pp higher than global (one seed: no interval)."
    ]


def test_the_highest_final_accuracy_comes_first():
    low, high = a_run("low", 0, [0.5, 0.5, 0.5, 0.55]), a_run("high", 0, [0.5, 0.5, 0.5, 0.6])
    assert [said.split()[0] for said in headline([GLOBAL[0], low, high])] == ["high", "low"]


def test_a_reference_arm_alone_is_compared_with_nothing():
    assert headline(GLOBAL) == ["global ends at 50.0 %; no other arm has finished a seed to compare with it."]


def test_a_speed_up_whose_interval_is_wider_than_a_factor_100_is_undetermined():
    others = [a_run("other", 0, [0.5, 0.5, 0.5, 0.5]), a_run("other", 1, [0.1, 0.5, 0.5, 0.5])]
    (said,) = headline(GLOBAL + others)  # 4x and 2x: [0.03, 231]
    assert "neither measurably sooner nor later (speed-up 2.83x [undetermined])" in said


# -- where the trace knows its concepts ---------------------------------------------------------------------


def drift_headline(runs, published=None, reference_arm="global"):
    summary = summarise(runs, name="x", window=1, reference_arm=reference_arm)
    report = {"published": {"accuracy_omitting_drift": published or {}}}
    return drift_sentence(summary["finished"], reference_arm, report)


def drifting_arm(name, *shares):
    return [a_drifting_run(name, seed, [share] * 2, [[0, 0]] * 2) for seed, share in enumerate(shares)]


def test_the_best_arm_omitting_drift_stands_beside_the_first_and_beside_what_is_published():
    runs = (
        drifting_arm("global", 0.5, 0.5) + drifting_arm("good", 0.75, 0.75) + drifting_arm("fair", 0.7, 0.7)
    )
    assert drift_headline(runs, {"good": [80.0, 1.5], "global": [50.0]}) == (
        "good has the highest accuracy omitting drift, 75.00 ± 0.00 % (published: 80.00 ± 1.50 %); "
        "global, the first arm, has 50.00 ± 0.00 % (published: 50.00 %)."
    )


def test_a_first_arm_that_is_the_best_is_said_to_be():
    runs = drifting_arm("global", 0.75) + drifting_arm("poor", 0.5)
    assert drift_headline(runs) == "global, the first arm, has the highest accuracy omitting drift, 75.00 %."


def test_a_run_that_is_too_short_is_said_to_be():
    runs = [a_drifting_run("global", 0, [0.75], [[0, 0]])]
    assert drift_headline(runs).endswith(" Scored are 1 of 2 data steps.")


def test_without_concepts_there_is_no_such_sentence():
    assert drift_headline(GLOBAL) is None
