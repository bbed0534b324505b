from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from experiments.results.pages import write_results
from experiments.results.pages.sentences import drift_sentence, in_terminal, notation, sentences
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import (
    TIMING,
    a_drifting_run,
    a_record,
    a_run,
    realistic_directory,
)

OVER = "(3 seeds, up to 30.0 s of virtual time)"


def found(runs: list[ReportedRun], reference_arm: str = "global", **settings: Any) -> list[str]:
    """The sentences on these runs, without smoothing."""
    return sentences(summarise(runs, name="x", window=1, reference_arm=reference_arm, **settings), {})


def headline(runs, **settings):
    """The first of them."""
    return found(runs, **settings)[0]


def an_arm(name, *ends, start=0.25):
    """A run for each of `ends`; its accuracy is `start` for half of the time, then the end."""
    return [a_run(name, seed, [start, end, end]) for seed, end in enumerate(ends)]


GLOBAL = an_arm("global", 0.5, 0.5, 0.5)


def test_a_clear_gain_is_stated_plainly():
    assert headline(GLOBAL + an_arm("fielding", 0.7, 0.7, 0.7)) == (
        f"fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global {OVER}."
    )


def test_a_loss_is_stated_as_plainly():
    assert headline(GLOBAL + an_arm("slow", 0.4, 0.4, 0.4)) == (
        f"slow has a mean accuracy of 32.5 %, 5.0 pp [5.0, 5.0] below global {OVER}."
    )


def test_an_interval_around_no_difference_claims_none():
    # Gains of 5, 0 and -4 pp: 0.33, and 4.303 * 4.509 / sqrt(3) = 11.2 either way.
    assert headline(GLOBAL + an_arm("other", 0.6, 0.5, 0.42)) == (
        "other has a mean accuracy of 37.8 %, "
        f"neither measurably above nor below (+0.3 pp [-10.9, +11.5]) global {OVER}."
    )


def test_the_gain_after_a_mass_event_is_stated_of_all_arms():
    runs = [a_run("global", seed, [0.5, 0.5, 0.25, 0.25, 0.25]) for seed in range(3)]
    for arm, end in (("fielding", 0.75), ("slow", 0.5)):
        runs += [a_run(arm, seed, [0.5, 0.5, 0.25, end, end]) for seed in range(3)]
    *_, of_the_first, of_the_other = found(runs, event_rounds=[2])
    assert of_the_first == "After the mass event, fielding is 16.7 pp [16.7, 16.7] above global."
    assert of_the_other == (
        "slow has a mean accuracy of 43.8 %, 6.2 pp [6.2, 6.2] above global, "
        "and 8.3 pp [8.3, 8.3] above it after the mass event."
    )


def test_under_three_seeds_the_sentence_states_that_there_is_no_interval():
    assert headline(GLOBAL[:2] + an_arm("other", 0.7, 0.7)).startswith(
        "other has a mean accuracy of 47.5 %, 10.0 pp (no interval: under three seeds) above global "
    )


def test_two_seeds_without_a_difference_are_not_called_as_good():
    assert headline(GLOBAL[:2] + an_arm("other", 0.5, 0.5)).startswith(
        "other has a mean accuracy of 37.5 %, 0.0 pp (no interval: under three seeds) from global "
    )


def test_two_arms_are_as_good_where_the_interval_lies_within_a_point_of_0():
    # Gains of 0.1, 0 and -0.1 pp: 4.303 * 0.1 / sqrt(3) = 0.25; ten times as wide it is no such claim.
    assert headline(GLOBAL + an_arm("other", 0.502, 0.5, 0.498)) == (
        f"other has a mean accuracy of 37.5 %, within 1 pp of (+0.0 pp [-0.2, +0.2]) global {OVER}."
    )
    wide = headline(GLOBAL + an_arm("other", 0.52, 0.5, 0.48))
    assert wide.endswith(f"neither measurably above nor below (+0.0 pp [-2.5, +2.5]) global {OVER}.")


def test_of_an_arm_with_a_trigger_the_range_of_its_seeds_is_stated():
    trigger = {"kind": "centre_shift", "threshold": 0.3}
    arms = [ARMS[0], {"name": "fielding", "clusterer": {"kind": "fielding", "trigger": trigger}}]
    configured = configured_arms({"arm": [{**arm, "baseline": False} for arm in arms]})
    assert headline(GLOBAL + an_arm("fielding", 0.6, 0.7, 0.8), configured=configured) == (
        f"fielding has a mean accuracy of 47.5 %, 10.0 pp (+5.0 to +15.0 by seed) above global {OVER}."
    )
    assert headline(GLOBAL + an_arm("fielding", 0.4, 0.7, 0.6), configured=configured) == (
        "fielding has a mean accuracy of 40.8 %, on average 3.3 pp (-5.0 to +10.0 by seed) above global "
        f"{OVER}."
    )


def test_the_largest_gain_comes_first_and_the_smallest_last():
    runs = [run for arm, end in (("a", 0.55), ("b", 0.6), ("c", 0.57)) for run in an_arm(arm, end, end, end)]
    first, final, *others = found(GLOBAL + runs)
    assert [sentence.split()[0] for sentence in (first, *others)] == ["b,", "c", "a"]
    assert final.startswith("Accuracy at the horizon: b 60.0 %")


def test_gains_on_different_data_say_so():
    fast = [a_record(number, step=number) for number in range(10)]
    slow = [a_record(number, step=number // 2) for number in range(10)]
    runs = [ReportedRun("global", 0, {}, fast, TIMING), ReportedRun("slow", 0, {}, slow, TIMING)]
    assert headline(runs) == (
        "slow has a mean accuracy of 50.0 %, 0.0 pp (no interval: under three seeds) from global (1 seed, up "
        "to 100 s of virtual time, by which arms have reached different data)."
    )


# -- on one arm ---------------------------------------------------------------------------------------------

ARMS = [
    {"name": "global", "clusterer": {"kind": "single"}, "baseline": True},
    {"name": "prior", "clusterer": {"kind": "single"}, "baseline": True},
    {"name": "fielding", "clusterer": {"kind": "fielding"}},
]
BASELINES = configured_arms({"arm": ARMS})
PRIOR = an_arm("prior", 0.56, 0.6, 0.64)
FIELDING = an_arm("fielding", 0.7, 0.7, 0.7)


def over_the_best(runs, configured=BASELINES, **settings):
    """The second sentence of a headline on fielding."""
    return found(runs, configured=configured, headline="fielding", **settings)[1]


def test_a_headline_states_a_loss_and_what_is_not_measurable():
    runs = GLOBAL + an_arm("fielding", 0.34, 0.42, 0.38) + PRIOR
    assert headline(runs, configured=BASELINES, headline="fielding").startswith(
        "fielding has a mean accuracy of 31.5 %, 6.0 pp [1.0, 11.0] below global "
    )
    assert over_the_best(runs) == (
        "fielding is 11.0 pp [6.0, 16.0] below prior, the best arm without clusters."
    )


def test_a_loss_against_the_best_is_stated_only_if_the_joint_interval_shows_it():
    # Over prior -5, -7, -9 pp: 4.303 * 2 / sqrt(3) = 5.0 by itself, and 7.2 for two arms at once.
    assert over_the_best(GLOBAL + an_arm("fielding", 0.46, 0.46, 0.46) + PRIOR) == (
        "fielding is not measurably above (-7.0 pp [-12.0, -2.0]) prior, the best arm without clusters."
    )


def test_an_arm_is_above_the_best_only_if_it_is_shown_to_be_above_every_baseline():
    # Over prior 5 pp in each seed; over global 12, 0, 12 pp, whose mean is larger and whose interval is wide.
    runs = an_arm("global", 0.46, 0.7, 0.46) + FIELDING + an_arm("prior", 0.6, 0.6, 0.6)
    assert over_the_best(runs) == (
        "fielding is not measurably above the best arm without clusters (+5.0 pp [+5.0, +5.0] over "
        "prior, but "
        "not measurably above global)."
    )
    assert "neither measurably above nor below (+8.0 pp [-9.2, +25.2]) global" in headline(
        runs, configured=BASELINES, headline="fielding"
    )


def test_a_headline_without_baselines_has_the_gain_over_the_reference_alone():
    runs = GLOBAL + an_arm("low", 0.55, 0.55, 0.55) + an_arm("high", 0.6, 0.6, 0.6)
    assert headline(runs, headline="low") == (
        f"low has a mean accuracy of 40.0 %, 2.5 pp [2.5, 2.5] above global {OVER}."
    )


# -- where the trace knows its concepts ---------------------------------------------------------------------


def drift_headline(runs, published=None, reference_arm="global"):
    summary = summarise(runs, name="x", window=1, reference_arm=reference_arm)
    report = {"published": {"accuracy_omitting_drift": published or {}}}
    return drift_sentence(summary.finished, reference_arm, report)


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


def test_a_first_arm_that_is_the_best_is_named_as_the_first():
    runs = drifting_arm("global", 0.75) + drifting_arm("poor", 0.5)
    assert drift_headline(runs) == "global, the first arm, has the highest accuracy omitting drift, 75.00 %."


def test_a_run_that_is_too_short_is_reported_with_its_scored_steps():
    runs = [a_drifting_run("global", 0, [0.75], [[0, 0]])]
    assert drift_headline(runs).endswith(" 1 of 2 data steps were scored.")


def test_without_concepts_there_is_no_such_sentence():
    assert drift_headline(GLOBAL) is None


# -- on several arms ----------------------------------------------------------------------------------------


def numbers(text: str) -> set[str]:
    """The numbers in a text, with their signs."""
    return set(re.findall(r"[+-]?\d+(?:[.,]\d+)*", text))


def test_the_arm_of_the_headline_is_compared_with_the_reference_then_with_the_best_then_by_time() -> None:
    lines = found(GLOBAL + FIELDING + PRIOR, configured=BASELINES, headline="fielding", targets=[0.4, 0.6])
    assert lines == [
        f"fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global {OVER}.",
        # Over prior 7, 5, 3 pp: 4.303 * 2 / sqrt(3) = 5.0.
        "fielding is 5.0 pp [0.0, 10.0] above prior, the best arm without clusters.",
        "Time to hold 60.0 %: fielding 20.0 s [20.0, 20.0 at 75.0 %] (3/3 seeds), prior 20.0 s "
        "[20.0, inf at 75.0 %) (2/3 seeds), global >= 30.0 s (0/3 seeds); "
        "speed-up of fielding over global >= 1.50x.",
        "prior has a mean accuracy of 42.5 %, 5.0 pp [0.0, 10.0] above global.",
    ]


def test_the_time_of_a_rival_that_is_the_reference_or_is_sooner_is_stated_once() -> None:
    """Prior holds 60 % from its first evaluation on, fielding from the second, and global never."""
    sooner = [a_run("prior", seed, [0.62, 0.62, 0.62]) for seed in range(3)]
    settings: dict[str, Any] = {"configured": BASELINES, "targets": [0.6]}
    assert found(GLOBAL + FIELDING + sooner, headline="fielding", **settings)[2] == (
        "Time to hold 60.0 %: fielding 20.0 s [20.0, 20.0 at 75.0 %] (3/3 seeds), prior <= 10.0 s "
        "(3/3 seeds), "
        "global >= 30.0 s (0/3 seeds); speed-up of fielding over global >= 1.50x."
    )
    assert found(GLOBAL + FIELDING + sooner, headline="prior", **settings)[2] == (
        "Time to hold 60.0 %: prior <= 10.0 s (3/3 seeds), global >= 30.0 s (0/3 seeds); "
        "speed-up of prior over global >= 3.00x."
    )
    of_global = found(GLOBAL + FIELDING + an_arm("prior", 0.4, 0.4, 0.4), headline="fielding", **settings)
    assert " (3/3 seeds), global >= 30.0 s " in of_global[1]


def test_a_reference_that_is_the_best_without_clusters_is_named_once() -> None:
    configured = configured_arms({"arm": [ARMS[0], ARMS[2]]})
    lines = found(GLOBAL + FIELDING, configured=configured, headline="fielding")
    assert lines == [
        "fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global, which is also the best "
        f"arm without clusters {OVER}.",
        "Accuracy at the horizon: fielding 70.0 %, global 50.0 %; +20.0 pp [+20.0, +20.0] over global.",
    ]


def test_an_arm_that_is_the_best_without_clusters_says_so() -> None:
    lines = found(GLOBAL + FIELDING + PRIOR, configured=BASELINES, headline="prior")
    assert lines[1] == "prior is the best arm without clusters."


def test_baselines_that_are_not_finished_are_named() -> None:
    first, second, _ = found(GLOBAL + FIELDING, configured=BASELINES, headline="fielding")
    assert first.endswith(
        f"above global, which is also the best arm without clusters of those finished {OVER}."
    )
    assert second == "prior has finished no seed in common with the first arm."
    of_prior = configured_arms({"arm": ARMS[1:]})
    runs = an_arm("slow", 0.4, 0.4, 0.4) + FIELDING
    assert found(runs, "slow", configured=of_prior, headline="fielding")[1] == (
        "The gain of fielding over the best arm without clusters is not known: prior has finished no seed in "
        "common with the first arm."
    )


def test_without_a_headline_the_arm_with_the_largest_gain_is_shown_as_chosen() -> None:
    runs = GLOBAL + an_arm("low", 0.55, 0.55, 0.55) + an_arm("high", 0.6, 0.6, 0.6)
    assert found(runs)[0] == (
        f"high, the arm with the largest gain, has a mean accuracy of 42.5 %, 5.0 pp [5.0, 5.0] above global "
        f"{OVER}."
    )
    assert found(GLOBAL + FIELDING)[0].startswith("fielding has a mean accuracy of")  # nothing was chosen


def test_after_a_mass_event_the_gain_is_stated_where_there_is_no_other_baseline() -> None:
    runs = [a_run("global", seed, [0.5, 0.5, 0.25, 0.25, 0.25]) for seed in range(3)]
    runs += [a_run("fielding", seed, [0.5, 0.5, 0.25, 0.75, 0.75]) for seed in range(3)]
    assert (
        found(runs, event_rounds=[2])[-1]
        == "After the mass event, fielding is 16.7 pp [16.7, 16.7] above global."
    )


def test_after_a_mass_event_the_gain_is_stated_over_the_best_arm_without_clusters_too() -> None:
    curves = {"global": [0.5, 0.5, 0.25, 0.25, 0.25], "prior": [0.5, 0.5, 0.25, 0.5, 0.5]}
    curves["fielding"] = [0.5, 0.5, 0.25, 0.75, 0.75]
    runs = [a_run(arm, seed, curve) for arm, curve in curves.items() for seed in range(3)]
    # Means from the event on: fielding (0.25 + 0.25 + 0.75) / 3, prior (0.25 + 0.25 + 0.5) / 3, global 0.25.
    assert found(runs, event_rounds=[2], configured=BASELINES, headline="fielding")[-2] == (
        "After the mass event, fielding is 16.7 pp [16.7, 16.7] above global, and 8.3 pp [8.3, 8.3] above "
        "prior, the best arm without clusters."
    )


def test_a_single_seed_has_no_interval_and_no_values_of_single_seeds() -> None:
    lines = found(GLOBAL[:1] + FIELDING[:1], targets=[0.6])
    assert lines == [
        "fielding has a mean accuracy of 47.5 %, 10.0 pp (no interval: under three seeds) above global (1 "
        "seed, up to 30.0 s of virtual time).",
        "Time to hold 60.0 %: fielding 20.0 s (1/1 seeds), global >= 30.0 s (0/1 seeds); "
        "speed-up of fielding over global >= 1.50x.",
    ]
    two = found(GLOBAL[:2] + FIELDING[:2])
    assert two[1] == "Accuracy at the horizon: fielding 70.0 %, global 50.0 %; +20.0 pp over global."


def test_the_highest_target_that_an_arm_holds_is_shown_with_the_direction_of_its_bounds() -> None:
    """One that nobody holds says less than the final accuracy."""
    early = [a_run("early", seed, [0.7, 0.7, 0.7]) for seed in range(3)]
    assert found(GLOBAL + early, targets=[0.3, 0.6, 0.9])[-1] == (
        "Time to hold 60.0 %: early <= 10.0 s (3/3 seeds), global >= 30.0 s (0/3 seeds); "
        "speed-up of early over global >= 3.00x."
    )
    assert found(GLOBAL + early, targets=[0.9])[-1].startswith("Accuracy at the horizon: early 70.0 %, ")
    assert found(GLOBAL + early, targets=["reference"])[-1].startswith(
        "Time to hold global's accuracy at the horizon (50.0 %): early <= 10.0 s (3/3 seeds), global 20.0 s "
    )


def test_the_finding_on_a_reference_arm_alone_is_that_it_is_compared_with_nothing() -> None:
    assert found(GLOBAL) == ["global ends at 50.0 %; no other arm has finished a seed to compare with it."]
    assert found(GLOBAL, targets=[0.4])[1:] == [
        "Time to hold 40.0 %: global 20.0 s [20.0, 20.0 at 75.0 %] (3/3 seeds)."
    ]


def test_arms_that_no_command_asked_for_are_not_said_to_be_unfinished() -> None:
    arms = [{"name": name, "baseline": False} for name in ("global", "fielding", "static")]
    asked: dict[str, Any] = {"configured": configured_arms({"arm": arms}), "left_out": ["fielding", "static"]}
    assert found(GLOBAL, **asked) == ["global ends at 50.0 %; no other arm was asked for."]
    some = {**asked, "left_out": ["static"]}
    assert found(GLOBAL, **some) == [
        "global ends at 50.0 %; no other arm has finished a seed to compare with it."
    ]
    beside = found(GLOBAL + an_arm("static", 0.6, 0.6, 0.6), headline="fielding", **asked)
    assert beside[0] == "fielding, the arm of the headline, was not asked for."


def test_an_interval_of_a_median_without_an_upper_bound_has_its_level_too() -> None:
    """Of three seeds, the third never holds 60 %."""
    lines = found(GLOBAL + an_arm("fielding", 0.7, 0.7, 0.5), targets=[0.6])
    assert lines[-1].startswith("Time to hold 60.0 %: fielding 20.0 s [20.0, inf at 75.0 %) (2/3 seeds), ")
    assert notation(lines[-1:]) == "[low, high at its level] is an interval of the median."


def test_arms_tie_with_every_arm_of_their_group() -> None:
    """Either of two is within 0.2 points of global; they are 0.3 points from each other."""
    runs = [a_run(arm, 0, [end] * 3) for arm, end in (("global", 0.5), ("above", 0.5015), ("below", 0.4985))]
    assert "global = above: every evaluation up to the horizon within 0.2 points in every seed." in found(
        runs
    )


def test_a_headline_on_the_reference_arm_or_on_one_that_has_not_run_says_so() -> None:
    assert found(GLOBAL + FIELDING, headline="global") == [
        f"global, the first arm, has a mean accuracy of 37.5 % {OVER}.",
        "Accuracy at the horizon: global 50.0 %.",
        "fielding has a mean accuracy of 47.5 %, 10.0 pp [10.0, 10.0] above global.",
    ]
    absent = found(GLOBAL + FIELDING, headline="absent")
    assert absent[0].startswith("absent, the arm of the headline, has finished no seed")
    assert absent[1].startswith("fielding has a mean accuracy of 47.5 %, ")


def test_runs_that_cannot_be_compared_have_one_line() -> None:
    late = [a_run("late", 0, [None, None, 0.5])]
    assert found([a_run("global", 0, [0.5]), *late]) == [
        "The runs have no stretch of virtual time in common: nothing can be compared."
    ]
    assert found(FIELDING) == ["No run of the reference arm 'global' is finished: nothing is compared."]


def test_where_the_trace_knows_its_concepts_the_accuracy_omitting_drift_comes_first() -> None:
    runs = drifting_arm("global", 0.5, 0.5) + drifting_arm("good", 0.75, 0.75)
    first, second, third = found(runs)
    assert first.startswith("good has the highest accuracy omitting drift, 75.00 ± 0.00 %; global, ")
    assert second.startswith("good has a mean accuracy of ")
    assert third.startswith("Accuracy at the horizon: good ")
    without_reference, nothing = found(drifting_arm("good", 0.75, 0.75))
    assert without_reference == "good has the highest accuracy omitting drift, 75.00 ± 0.00 %."
    assert nothing.startswith("No run of the reference arm 'global' is finished")


def test_there_are_at_most_three_lines() -> None:
    runs = [run for arm in ("global", "prior", "fielding") for run in drifting_arm(arm, 0.5, 0.6, 0.7)]
    lines = found(runs, configured=BASELINES, headline="fielding", targets=[0.3])
    *first, what_brackets_are = in_terminal(lines)
    assert first == lines[:3]
    assert "omitting drift" in first[0]
    assert what_brackets_are == notation(first)
    assert in_terminal(["All is said."]) == ["All is said."]


def test_what_brackets_are_is_said_once_where_they_are() -> None:
    by_seed, interval = "2.1 pp (+1.0 to +3.2 by seed) above", "2.1 pp [-1.0, 3.2] above"
    median, deviation = "1.64 h [1.43, 1.89 at 93.8 %]", "97.53 ± 0.13 %"
    parts = [notation([text]).removesuffix(".") for text in (by_seed, interval, median, deviation)]
    assert [part.split(" is ")[0] for part in parts] == [
        "(low to high by seed)",
        "[low, high]",
        "[low, high at its level]",
        "±",
    ]
    assert notation([deviation, median, interval, by_seed, median]) == f"{'; '.join(parts)}."
    assert notation(["a [b, c] is 2.1 pp (no interval: under three seeds) above <![CDATA[ ]]>."]) == ""


def test_arms_that_tie_are_said_in_one_sentence() -> None:
    twice = [a_run("again", seed, [0.25, 0.702, 0.7]) for seed in range(3)]
    within = "every evaluation up to the horizon within 0.2 points in every seed"
    assert f"fielding = again: {within}." in found(GLOBAL + FIELDING + twice)
    assert f"global = same, fielding = again: {within}." in found(
        GLOBAL + FIELDING + twice + an_arm("same", 0.5, 0.5, 0.5)
    )
    apart = [a_run("again", seed, [0.25, 0.703, 0.7]) for seed in range(3)]
    assert "every evaluation" not in " ".join(found(GLOBAL + FIELDING + apart))


def test_arms_that_were_not_asked_for_are_not_called_unfinished() -> None:
    """Of the baselines, only global was played."""
    settings: dict[str, Any] = {"configured": BASELINES, "headline": "fielding"}
    first, second, *_ = found(GLOBAL + FIELDING, left_out=["prior"], **settings)
    assert first.endswith(f"which is also the best arm without clusters of those finished {OVER}.")
    assert second == "prior was not asked for."
    assert found(GLOBAL + FIELDING, **settings)[1].startswith("prior has finished no seed in common")


def text_of(page: Path) -> str:
    """The text of a page, without its markup and scripts."""
    content = re.sub(r"<script.*?</script>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", content))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_every_number_of_the_sentences_is_in_the_report(tmp_path: Path, seeds: int) -> None:
    directory = realistic_directory(tmp_path, seeds=seeds, rounds=40, clients=20)
    experiment = directory.experiment()
    experiment["report"] |= {"targets": [0.4, 0.5, "reference"], "headline": "fielding"}
    for arm in experiment["arm"][:2]:
        arm["baseline"] = True
    directory.experiment_path.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    lines = sentences(write_results(directory, shared_plotly=True), experiment["report"])
    assert len(lines) >= 4
    assert numbers(" ".join(lines)) <= numbers(text_of(directory.report_path))
