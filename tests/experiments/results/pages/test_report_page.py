import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import tomli_w

from driftscale import load
from emulator.errors import InputError
from experiments.cli import tables
from experiments.results.drawing.arms import TIED
from experiments.results.figures import all_figures
from experiments.results.many_runs.folder_table import how_many_runs
from experiments.results.pages import write_report
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.synthetic_runs import a_directory, a_run, realistic_directory, store

HOSTILE = "<img src=x onerror=alert(1)>"


def written(directory):
    return write_report(directory).read_text(encoding="utf-8")


def body(page):
    return page[page.index("<body") :]


def test_the_same_files_give_the_same_bytes(tmp_path):
    directory = realistic_directory(tmp_path, seeds=2, rounds=20, clients=12)
    first = write_report(directory).read_bytes()
    assert write_report(directory).read_bytes() == first


def test_the_page_states_how_many_plots_it_has(tmp_path):
    page = written(realistic_directory(tmp_path, seeds=2, rounds=20, clients=12))
    assert '<body data-plots="11">' in page
    assert body(page).count("Plotly.newPlot(") == 11


def test_names_are_shown_and_never_run(tmp_path):
    directory = a_directory(tmp_path, ["global", HOSTILE], [0], name=f"</title><script>{HOSTILE}")
    for arm in directory.arms():
        store(directory, a_run(arm, 0, [0.25, 0.5], clusters=[0, 1]))
    page = written(directory)
    assert "<img" not in body(page)
    assert "</title><script>" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_a_headline_on_one_arm_has_what_came_after_the_mass_event_in_the_list_alone(
    tmp_path,
):
    trace, report = {"source": "digits", "drift": {"events": [{"round": 1}]}}, {"headline": "fielding"}
    directory = a_directory(
        tmp_path, ["global", "fielding"], [0], trace=trace, report={"window": 1, **report}
    )
    for arm, accuracy in (("global", 0.25), ("fielding", 0.5)):
        store(directory, a_run(arm, 0, [0.25, accuracy, accuracy], clusters=[0, 1]))
    page = body(written(directory))
    [lead] = re.findall(r'<p class="headline">(.*?)</p>', page)
    assert lead.startswith("fielding has a mean accuracy of ")
    assert "mass event" not in lead
    assert "<li>After the mass event, fielding is 12.5 pp" in page
    assert "Of the other arms" not in page  # there is none


def test_a_page_marks_the_arms_in_which_offline_clients_are_heard(tmp_path):
    mark = "Offline clients heard: fielding. "
    assert mark not in written(realistic_directory(tmp_path / "online", seeds=1, rounds=20, clients=12))
    directory = a_directory(tmp_path / "everyone", ["global", "fielding"], [0])
    for arm, changed in (("global", 0), ("fielding", 2)):
        run = a_run(arm, 0, [0.25, 0.5], changed=changed)
        store(directory, replace(run, header={"hear": "everyone"}))
    assert mark in body(written(directory))


def test_a_page_says_that_clients_come_and_go_and_over_whom_it_averages(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0])
    run = a_run("global", 0, [0.25, 0.5, 0.5], clusters=[0, 1])
    store(directory, run)
    page = body(written(directory))
    assert "Clients come and go" not in page
    assert "holds no training samples then" not in page
    run.records[0] = replace(run.records[0], kmeans_clients=2, silhouette_clients=2, holding=2)
    run.records[1] = replace(run.records[1], holding=3)
    (directory.run_file("global", 0, "log.jsonl")).unlink()
    store(directory, run)
    page = body(written(directory))
    assert "Clients come and go: between 2 and 4 of 4 hold training samples at a time, and take part;" in page
    assert "hold test samples too, and are scored." in page
    assert "averaged over the clients, while they hold samples to train on and to be tested on, and" in page
    assert "None: the client holds no training samples then." in page
    assert "drawn at random" not in page  # the two that were clustered are all that held data then


def test_a_log_without_memberships_has_no_map(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0])
    store(directory, a_run("global", 0, [0.25, 0.5], clusters=[0, 1], members=None))
    assert "Which cluster each client was in" not in written(directory)


def test_plotly_is_inlined_once_and_may_fetch_nothing(tmp_path):
    page = written(realistic_directory(tmp_path, seeds=1, rounds=20, clients=12))
    assert page.count("plotly.js v") == 1
    assert "default-src 'none'" in page[: page.index("<script")]
    assert "plotly.min.js" not in page


def test_plotly_in_the_folder_above_is_loaded_and_not_inlined(tmp_path):
    directory = realistic_directory(tmp_path / "run", seeds=1, rounds=20, clients=12)
    page = write_report(directory, shared_plotly=True).read_text(encoding="utf-8")
    assert "plotly.js v" not in page
    assert len(page) < 200_000
    assert page.count('src="../plotly.min.js"') == 1
    [needs] = re.findall(r'<p class="[^"]*needs-plotly">(.*)</p>', page)
    assert "need plotly.min.js in the folder above" in needs
    assert "driftscale report DIR" in needs
    assert write_report(directory, shared_plotly=True).read_text(encoding="utf-8") == page


@pytest.mark.parametrize("shared_plotly", [False, True])
def test_every_script_carries_the_nonce_of_the_page_which_nothing_else_allows(tmp_path, shared_plotly):
    directory = realistic_directory(tmp_path, seeds=1, rounds=20, clients=12)
    page = write_report(directory, shared_plotly=shared_plotly).read_text(encoding="utf-8")
    [nonce] = re.findall(r"script-src 'nonce-([0-9a-f]{64})';", page)
    own = page.count(f'<script nonce="{nonce}"')
    assert (
        own == page.count("</script>") == page.count(f'nonce="{nonce}"') == 11 + (4 if shared_plotly else 3)
    )
    assert page.count("script-src") == page.count("Content-Security-Policy") == 1
    directory.experiment_path.write_text(
        directory.experiment_path.read_text(encoding="utf-8").replace("smartphones", nonce), encoding="utf-8"
    )
    again = write_report(directory, shared_plotly=shared_plotly).read_text(encoding="utf-8")
    assert f"'nonce-{nonce}'" not in again  # a text cannot have the nonce of its own page


def test_the_page_shows_what_was_run(tmp_path):
    directory = realistic_directory(tmp_path, seeds=2, rounds=20, clients=12)
    page = body(written(directory))
    assert "digits trace · 200 clients · smartphones devices" in page
    assert "drift label_mix (events round 75, share 0.8, mixes 4)" in page
    assert "clusterer fielding (trigger centre_shift (threshold 0.3333))" in page
    assert "driftscale 0.1.0 · python 3.11" in page


def test_runs_that_do_not_count_are_named_with_their_reason(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding", "static"], [0, 1])
    store(directory, a_run("global", 0, [0.5]))
    store(directory, a_run("fielding", 1, [0.5]))
    directory.start("global", 1)
    directory.mark_failed("global", 1, "nobody was <online>")
    page = body(written(directory))
    assert "global: seed 1 failed: nobody was &lt;online&gt;" in page
    assert "fielding: seed 0 not finished" in page
    assert "fielding: seed 1 finished, but the reference arm did not finish this seed" in page
    assert "static: seeds 0, 1 not finished" in page


def test_arms_that_no_command_asked_for_are_named_as_that_and_planned_nowhere(tmp_path):
    directory = a_directory(tmp_path / "run", ["global", "fielding", "static"], [0, 1])
    arguments = ["driftscale", "run", "x", "--arms", "global,fielding"]
    commands = [{"arguments": arguments, "started": "2026-01-31T12:00:00Z"}]
    directory.manifest_path.write_text(json.dumps({"commands": commands}))
    for arm, seed in (("global", 0), ("global", 1), ("fielding", 0)):
        store(directory, a_run(arm, seed, [0.5]))
    page = body(written(directory))
    assert "<li>fielding: seed 1 not finished</li>" in page
    assert "<li>not asked for: static</li>" in page
    assert "static: seed" not in page
    assert how_many_runs(directory) == {"finished": 3, "failed": 0, "planned": 4}
    assert load(directory.path).unfinished == ["fielding, seed 1"]


def a_page_of(tmp_path, accuracies, **report):
    """The text of the page for runs of three seeds with these accuracies."""
    directory = a_directory(tmp_path, list(accuracies), [0, 1, 2], report={"window": 1, **report})
    for arm, values in accuracies.items():
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, values))
    return text_of(directory)


def text_of(directory):
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", body(written(directory)))).split())


def test_without_a_target_the_page_explains_how_to_set_one_and_has_no_table_of_times(tmp_path):
    page = a_page_of(tmp_path, {"global": [0.25, 0.5], "fielding": [0.5, 0.5]})
    assert "No target accuracy is set. report.targets = [0.5] in the configuration" in page
    assert "held from" not in page


def test_the_page_has_a_table_for_each_target_with_the_signs_of_what_is_known(tmp_path):
    page = a_page_of(
        tmp_path, {"global": [0.25, 0.25, 0.5], "slow": [0.25, 0.25, 0.25]}, targets=[0.5, "reference"]
    )
    assert "Target: 50.0 %" in page
    assert "Target: global's accuracy at the horizon (50.0 %)" in page
    columns = "arm time below saved first reached held from speed-up held"
    assert page.count(columns) == 2
    assert (
        "slow 30.0 s [30.0, 30.0] undetermined >= 30.0 s [30.0, inf) >= 30.0 s [30.0, inf) <= 1.00x [0, 1.00]"
        in page
    )
    assert "moves with the horizon" in page


def test_an_arm_with_few_seeds_leaves_the_notes_on_the_other_arms_as_they_are(tmp_path):
    directory = a_directory(tmp_path, ["global", "one", "two", "few"], [0, 1, 2], report={"window": 1})
    for arm in directory.arms():
        for seed in directory.seeds()[: 1 if arm == "few" else 3]:
            store(directory, a_run(arm, seed, [0.25, 0.5]))
    page = text_of(directory)
    assert "Mean and 95 % interval over seeds (Student's t)" in page
    assert "4 comparisons, each interval at its own level" in page
    assert page.count("bands are their intervals at each target by itself") == 2
    assert page.count("without a test") == 2
    assert "hold for all arms at once (Bonferroni, 95 %): one [+0.0, +0.0], two [+0.0, +0.0]" in page
    assert "With under three seeds there is no interval" in page


def test_what_was_compared_stands_before_the_tables_with_its_warnings(tmp_path):
    page = a_page_of(tmp_path, {"global": [0.25, 0.5], "fielding": [0.5, 0.5]}, horizon_s=3_600.0)
    assert "Compared up to 20.0 s of virtual time (global, seed 0, ended there)" in page
    assert "Warning: the horizon is 20.0 s instead of the 60.0 min of report.horizon_s" in page
    assert page.index("Compared up to") < page.index("Accuracy over time")


def test_every_note_that_the_terminal_explains_with_is_on_the_page(tmp_path, monkeypatch):
    directory = realistic_directory(tmp_path, seeds=2, rounds=40, clients=20)
    experiment = directory.experiment()
    experiment["report"]["targets"] = [0.5, "reference"]
    experiment["arm"][0]["baseline"] = True
    directory.experiment_path.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    notes = []
    monkeypatch.setattr(tables, "_note", lambda console, text: notes.append(text))
    tables.print_summary(summarise_directory(directory, directory.reported_runs()))
    page = text_of(directory)
    assert len(notes) > 8
    assert [note for note in notes if " ".join(note.split()) not in page] == []


def test_joint_intervals_are_given_where_several_arms_are_compared(tmp_path):
    accuracies = {"global": [0.25, 0.5], "one": [0.5, 0.5], "two": [0.75, 0.5]}
    assert (
        "hold for all arms at once (Bonferroni, 95 %): one [+25.0, +25.0], two [+50.0, +50.0]"
        in a_page_of(tmp_path, accuracies)
    )
    assert "4 comparisons, each interval at its own level" in a_page_of(tmp_path, accuracies)


def test_a_directory_without_a_finished_reference_has_no_report(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding"], [0])
    store(directory, a_run("fielding", 0, [0.5]))
    with pytest.raises(InputError, match="the reference arm 'global' has no finished run"):
        write_report(directory)
    assert not directory.report_path.exists()


def test_a_sample_of_clients_that_stands_for_all_is_reported(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0])
    members = np.zeros(5000, dtype=np.int64)
    run = a_run("global", 0, [0.25, 0.5])
    run.records[0] = replace(
        run.records[0], members=members, kmeans_clients=3000, silhouette_clients=2000, reclustered=True
    )
    store(directory, run)
    assert "averaged over the clients" in body(written(directory))
    experiment = directory.experiment_path.read_text(encoding="utf-8")
    directory.experiment_path.write_text(
        experiment.replace("[round]", "[round]\nevaluate_clients = 400"), encoding="utf-8"
    )
    page = body(written(directory))
    assert "averaged over a fixed sample of 400 of the 5,000 clients" in page
    assert "fitted to the reports of 3,000 clients, drawn at random" in page
    assert "by those of 2,000" in page


def test_the_page_answers_four_questions_in_order_and_links_to_them(tmp_path):
    page = body(written(realistic_directory(tmp_path, seeds=1, rounds=20, clients=12)))
    ids = ["pays", "for-whom", "why", "repeat"]
    assert re.findall(r'<section class="question" id="([^"]*)"', page) == ids
    assert re.findall(r'<li><a href="#([^"]*)">', page) == ids
    whom = page[page.index('id="for-whom"') : page.index('id="why"')]
    assert "round.log_client_accuracy = true" in whom
    assert "round.log_visits = true" in page[page.index('id="why"') :]


def test_the_page_has_the_hashes_of_its_inputs(tmp_path):
    directory = realistic_directory(tmp_path, seeds=1, rounds=20, clients=12)
    directory.manifest_path.write_text(
        json.dumps(
            {"files": {"d.csv": {"size": 1234, "sha256": "a" * 64}}, "sha256": {"0": {"trace": "b" * 64}}}
        )
    )
    page = text_of(directory)
    assert f"d.csv {'a' * 64} (1,234 bytes)" in page
    assert f"seed 0, trace {'b' * 64}" in page


class Outline(HTMLParser):
    """What a reader without a mouse or a screen has of a page: headings, folds, links, names and ids."""

    def __init__(self, page):
        super().__init__()
        self.levels, self.ids, self.links, self.unnamed = [], [], [], []
        self.summaries, self.path = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.ids += [found["id"]] if "id" in found else []
        if tag == "a" and found.get("href", "").startswith("#"):
            self.links.append((found["href"][1:], found.get("aria-label")))
        if found.get("role") in ("img", "group") and not found.get("aria-label"):
            self.unnamed.append(found)
        if tag == "summary":
            self.summaries.append("")
        if tag not in ("meta", "link", "br", "img", "input", "hr"):
            self.path.append(tag)

    def handle_data(self, data):
        if "summary" in self.path:
            self.summaries[-1] += data

    def handle_endtag(self, tag):
        while self.path and self.path.pop() != tag:
            pass


def test_headings_folds_links_and_names_are_those_that_assistive_software_needs(tmp_path):
    page = Outline(body(written(realistic_directory(tmp_path, seeds=2, rounds=20, clients=12))))
    assert page.levels[0] == 1
    assert page.levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(page.levels))
    assert len(page.ids) == len(set(page.ids))
    assert {target for target, _ in page.links} <= set(page.ids)
    figures = [label for target, label in page.links if target.startswith("figure-")]
    assert len(figures) == 11
    assert len(set(figures)) == 11
    assert all(label.startswith("Link to the figure: ") for label in figures)
    assert page.unnamed == []
    assert all(text.strip() for text in page.summaries)


def test_a_fold_says_which_tables_and_figures_are_in_it_and_the_page_opens_with_one_figure(tmp_path):
    page = body(written(realistic_directory(tmp_path, seeds=2, rounds=20, clients=12)))
    found = re.findall(
        r'<h2 id="([\w-]+)-title">.*?</h2>\s*<span class="contents">(.*?)</summary>', page, re.DOTALL
    )
    titles = {question: re.findall("<span>(.*?)</span>", text) for question, text in found}
    assert list(titles) == ["pays", "for-whom", "why", "repeat"]
    assert titles["pays"][0] == "Accuracy over time"
    assert "Difference in accuracy over time" in titles["pays"]
    assert "Accuracy against virtual time" not in titles["pays"]  # it is not folded
    assert titles["for-whom"].count("Which cluster each client was in") == 1  # of two arms
    assert titles["repeat"] == ["Every seed", "What was run"]
    assert page.index('id="accuracy"') < page.index("<details")
    assert page.index('id="difference"') > page.index("<details")


def a_page_that_opens_with(tmp_path, first, **changes):
    directory = a_directory(tmp_path, ["global", "fielding"], [0, 1], report={"window": 1, "first": first})
    for arm in directory.arms():
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, [0.25, 0.5], clusters=[0, 1], **changes))
    return body(written(directory))


def test_a_page_opens_with_the_figure_that_is_asked_for_in_place_of_accuracy(tmp_path):
    page = a_page_that_opens_with(tmp_path, "difference")
    assert page.index('id="difference"') < page.index("<details") < page.index('id="accuracy"')
    assert page.count('id="difference"') == page.count('id="accuracy"') == 1


def test_a_page_opens_with_the_table_that_is_asked_for_before_the_figure_of_accuracy(tmp_path):
    page = a_page_that_opens_with(tmp_path, "costs")
    assert page.count(">Costs</h2>") == 1
    assert ">Costs</h3>" not in page
    assert page.index(">Costs</h2>") < page.index('id="accuracy"') < page.index("<h2>Arms, up to ")


def test_a_section_whose_only_table_opens_the_page_is_not_said_to_be_not_shown(tmp_path):
    page = a_page_that_opens_with(tmp_path, "round_lengths")
    assert page.count(">Lengths of rounds</h") == 1  # the table's own title is that of the section
    assert "Rounds, and what they waited for" not in page
    assert "Not shown: " not in page
    assert "Rounds, and what they waited for" in a_page_that_opens_with(tmp_path / "costs", "costs")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("trigger", "no trigger compared anything"),
        ("clients_by", "there is nothing to draw"),
        ("faults", "the table says nothing of these runs"),
    ],
)
def test_a_page_says_so_if_what_it_should_open_with_shows_nothing(tmp_path, first, why):
    page = a_page_that_opens_with(tmp_path, first)
    assert f"report.first = &#39;{first}&#39; is not shown: {why}." in page
    assert page.index('id="accuracy"') < page.index("<details")


def test_a_recorded_configuration_that_opens_with_nothing_that_exists_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"first = 'accuracies': no figure or table; .* clients_by"):
        a_page_that_opens_with(tmp_path, "accuracies")


def test_a_page_opens_with_three_sentences_and_folds_the_others(tmp_path):
    arms = {"global": [0.25, 0.5], **{f"arm-{place}": [0.5, 0.5 + place / 10] for place in range(5)}}
    directory = a_directory(tmp_path, list(arms), [0, 1, 2], report={"window": 1})
    for arm, accuracies in arms.items():
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, accuracies))
    page = body(written(directory))
    shown, folded = page[: page.index("<details")], page[page.index("<details") :]
    assert shown.count(" at the horizon: ") == 1
    assert shown.count(" has a mean accuracy of ") == 2
    assert folded.count(" has a mean accuracy of ") == 3
    assert "<summary>3 more sentences, and notes</summary>" in folded


def in_a_line(page):
    """The headings and the rows of the table that has a line for each arm."""
    table = page[page.index('<section class="in-a-line">') :].partition("</table>")[0]
    texts = [
        [
            " ".join(html.unescape(re.sub("<[^>]+>", " ", cell)).split())
            for cell in re.findall("<t[hd].*?</t[hd]>", row)
        ]
        for row in re.findall("<tr>.*?</tr>", table, re.DOTALL)
    ]
    return texts[0], texts[1:]


def test_the_table_has_a_line_for_each_arm_with_what_a_reader_asks_first(tmp_path):
    report = {"window": 1, "targets": [0.5, 0.9]}
    directory = a_directory(tmp_path, ["global", "fielding"], [0, 1, 2], report=report)
    accuracy = {"global": [0.25, 0.25, 0.25], "fielding": [0.25, 0.5, 0.5]}
    scores = [0.0, 0.25, 0.75, 1.0]
    for arm in directory.arms():
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, accuracy[arm], client_accuracy=np.array(scores)))
    page = body(written(directory))
    headings, rows = in_a_line(page)
    of_medians = "a median, its interval of order statistics at 75.0 %. Bytes are "  # of three seeds
    assert of_medians in page
    # 0.9 is held by none. Of three rounds, (400 + 300 + 16) bytes each; the worst of four clients has 0.
    assert headings == ["arm", "mean accuracy", "gain", "50.0 % held from", "bytes", "worst tenth"]
    assert rows == [
        [
            "global",
            "25.0 % [25.0, 25.0]",
            "reference",
            ">= 30.0 s [30.0, inf)",
            "2.15 kB",
            "0.0 % [0.0, 0.0]",
        ],
        [
            "fielding",
            "37.5 % [37.5, 37.5]",
            "+12.5 pp [+12.5, +12.5]",
            "20.0 s [20.0, 20.0]",
            "2.15 kB",
            "0.0 % [0.0, 0.0]",
        ],
    ]


def test_the_gain_in_a_line_is_over_the_best_without_clusters_where_arms_are_baselines(tmp_path):
    directory = a_directory(tmp_path, ["global", "other", "fielding"], [0, 1, 2], report={"window": 1})
    experiment = directory.experiment()
    for arm in experiment["arm"][:2]:
        arm["baseline"] = True
    directory.experiment_path.write_text(tomli_w.dumps(experiment), encoding="utf-8")
    for arm, values in (("global", [0.25, 0.25]), ("other", [0.5, 0.5]), ("fielding", [0.75, 0.75])):
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, values))
    page = body(written(directory))
    headings, rows = in_a_line(page)
    assert "the range of its seeds. Bytes are " in page
    column = headings.index("over the best without clusters")
    assert [row[column] for row in rows] == [
        "-25.0 pp [-25.0, -25.0]",
        "the best",
        "+25.0 pp [+25.0, +25.0]",
    ]


def test_runs_that_do_not_count_are_warned_of_before_the_folds(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding", "static"], [0, 1])
    store(directory, a_run("global", 0, [0.5]))
    page = body(written(directory))
    shown = html.unescape(page[: page.index("<details")])
    assert "Not in the figures: global: seed 1 not finished, and 2 more below." in shown


def test_the_later_of_two_arms_that_tie_is_drawn_dashed_and_both_are_in_the_legend(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding", "same"], [0, 1], report={"window": 1})
    for arm, values in (("global", [0.25, 0.5]), ("fielding", [0.5, 0.75]), ("same", [0.5, 0.751])):
        for seed in directory.seeds():
            store(directory, a_run(arm, seed, values))
    runs = directory.reported_runs()
    report = Report(directory, runs, summarise_directory(directory, runs))
    assert [(arm.name, arm.ties) for arm in report.arms] == [
        ("global", False),
        ("fielding", False),
        ("same", True),
    ]
    [plot] = all_figures()["accuracy"].plots(report)
    dashes = {trace["name"]: trace["line"]["dash"] for trace in plot.figure.data if "name" in trace}
    assert dashes == {"global": "solid", "fielding": "solid", "same": TIED["dash"]}
