"""The section "For whom?" over made-up runs: 40 clients, of which the odd ones have devices twice as slow."""

from dataclasses import replace

import numpy as np
import pytest

from emulator.errors import InputError
from emulator.storage.recorded_tables import write_clients
from experiments.results.drawing.arms import Arm
from experiments.results.figures.client_curves import client_accuracy_figure, client_gain_figure
from experiments.results.figures.clients_by import cluster_figure
from experiments.results.pages.report_page import (
    GROUPS,
    HOW_TO_LOG_CLIENTS,
    page_sections,
    plots,
    write_report,
)
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.clients.accuracy import at_the_horizon
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.synthetic_runs import TIMING, a_directory, a_record, a_run, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

CLIENTS = 40
ODD = np.arange(CLIENTS) % 2


def accuracies(arm, seed):
    """The even clients have 0.5; the odd ones have 0.25, under another arm than global 0.125 more."""
    return np.where(ODD == 1, 0.25 + 0.125 * (arm != "global"), 0.5) + seed / 64


def a_run_of_clients(arm, seed, num_labels=2, has_labels=True):
    records = [
        a_record(
            number,
            members=(0 if arm == "global" else 1) * ODD if number == 0 else None,
            client_accuracy=accuracies(arm, seed).astype(np.float32),
            client_label=np.arange(CLIENTS) % num_labels if has_labels else None,
        )
        for number in range(2)
    ]
    return ReportedRun(arm, seed, {"num_clients": CLIENTS}, records, TIMING)


def a_folder(path, arms=("global", "fielding"), seeds=(0, 1, 2), has_clients=True, **settings):
    directory = a_directory(path, arms, seeds)
    for arm in arms:
        for seed in seeds:
            store(directory, a_run_of_clients(arm, seed, **settings))
            if has_clients:
                write_clients(
                    directory.run_file(arm, seed, "clients.parquet"),
                    {
                        "seconds_per_sample": 0.5 + 0.5 * ODD,
                        "download_bytes_per_s": np.arange(1.0, CLIENTS + 1),
                        "upload_bytes_per_s": np.arange(1.0, CLIENTS + 1),
                        "latency_s": np.zeros(CLIENTS),
                    },
                    None,
                )
    return directory


def a_report(directory):
    runs = directory.reported_runs()
    return Report(directory, runs, summarise_directory(directory, runs))


def section(directory):
    return page_sections(a_report(directory))["for-whom", False][GROUPS["clients"]]


def drawn(directory):
    return [plot for plot in plots(a_report(directory))["for-whom"] if plot.id.startswith("client")]


def cells(found, title):
    table = next(part.table for part in found.tables if part.title == title)
    return table.headings, {arm: [cell.figure for cell in row] for arm, row in table.rows}


def test_the_section_answers_for_whom(tmp_path):
    directory = a_folder(tmp_path)
    found = section(directory)
    headings, rows = cells(found, "Who is worse off")
    assert headings[:4] == ["mean of clients", "worst tenth", "gain of worst tenth", "worse off"]
    assert rows["fielding"] == ["45.3 %", "39.1 %", "+12.5 pp", "0.0 %", "50.0 %", "50.0 %", "n/a"]
    assert rows["global"] == ["39.1 %", "26.6 %", *["reference"] * 5]
    assert cells(found, "Deciles")[1]["global"] == ["26.6 %"] * 4 + ["39.1 %"] + ["51.6 %"] * 4
    # Of two speeds, the clients on the bound are in the faster quarter: the third one holds the slow half.
    headings, rows = cells(found, "By device speed")
    assert headings[0] == "fastest quarter (n 20)"
    assert sum("(n 20)" in heading for heading in headings) == 2
    assert sorted(rows["fielding"]) == ["39.1 %", "51.6 %", "n/a", "n/a"]
    assert cells(found, "By network speed")[1]["global"] == ["39.1 %"] * 4
    assert cells(found, "By label mix") == (
        ["label 0 (n 20)", "label 1 (n 20)"],
        {"global": ["51.6 %", "26.6 %"], "fielding": ["51.6 %", "39.1 %"]},
    )
    assert cells(found, "By cluster")[1] == {
        "global": ["1.0", "39.1 %", "39.1 %", "0.0 pp"],
        "fielding": ["2.0", "39.1 %", "51.6 %", "12.5 pp"],
    }
    assert found.remarks == []
    assert [plot.id for plot in drawn(directory)] == [
        *("client-accuracy", "client-gain", "clients-by-device", "clients-by-network"),
        *("clients-by-label", "clients-by-cluster"),
    ]


def test_intervals_and_lines_are_named_as_what_they_are(tmp_path):
    def texts(*seeds):
        directory = a_folder(tmp_path / str(len(seeds)), seeds=seeds)
        deciles = next(part.notes[0] for part in section(directory).tables if part.title == "Deciles")
        return deciles, drawn(directory)[0].caption

    note, caption = texts(0, 1, 2)
    assert "Means and 95 % intervals over seeds (Student's t), each by itself." in note
    assert caption.endswith("Lines are means over seeds, bands are the range of the seeds.")
    note, caption = texts(0, 1)
    assert "Means over seeds; dots are single seeds." in note
    note, caption = texts(0)
    assert "over seeds" not in note
    assert caption.endswith("Lines are of a single seed.")


def test_what_was_not_recorded_is_named(tmp_path):
    found = section(a_folder(tmp_path, has_clients=False, has_labels=False))
    assert [remark.split(":")[0] for remark in found.remarks] == [
        "By device speed",
        "By network speed",
        "By label mix",
    ]
    assert [part.title for part in found.tables] == ["Who is worse off", "Deciles", "By cluster"]


def test_of_62_labels_most_are_folded(tmp_path):
    headings, _ = cells(section(a_folder(tmp_path, num_labels=40)), "By label mix")
    assert headings == [*(f"label {label} (n 1)" for label in range(12)), "other labels (n 28)"]


def test_a_table_of_too_few_clients_is_named(tmp_path):
    directory = a_folder(tmp_path, arms=("global",), seeds=(0,))
    directory.run_file("global", 0, "clients.parquet").unlink()
    write_clients(
        directory.run_file("global", 0, "clients.parquet"),
        {
            name: np.arange(1.0, 4.0)
            for name in ("seconds_per_sample", "download_bytes_per_s", "upload_bytes_per_s", "latency_s")
        },
        None,
    )
    with pytest.raises(InputError, match=r"clients\.parquet has 3 clients, and the log 40"):
        section(directory)


@pytest.mark.slow
def test_without_logged_accuracies_the_page_names_the_option(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0])
    store(directory, a_run("global", 0, [0.5, 0.5]))
    assert (section(directory).tables, drawn(directory)) == ([], [])
    assert section(directory).remarks == [HOW_TO_LOG_CLIENTS]
    page = write_report(directory, shared_plotly=True).read_text(encoding="utf-8")
    assert "round.log_client_accuracy = true" in page


@pytest.mark.slow
def test_the_page_shows_the_tables_and_plots(tmp_path):
    page = write_report(a_folder(tmp_path), shared_plotly=True).read_text(encoding="utf-8")
    for text in ("Who is worse off", "By label mix", 'id="client-accuracy"', 'id="clients-by-cluster"'):
        assert text in page
    assert "0.0 % [0.0, 0.0] of its clients lost accuracy" in page


def test_quantiles_drawn_are_those_of_numpy_and_means_over_seeds(tmp_path):
    directory = a_folder(tmp_path, seeds=(0, 1))
    report = a_report(directory)
    arms, found = report.arms, report.clients
    lines = {
        trace.name: trace for trace in client_accuracy_figure(arms, found).validated().data if trace.name
    }
    expected = np.mean(
        [np.quantile(accuracies("fielding", seed), np.arange(101) / 100) for seed in (0, 1)], axis=0
    )
    assert np.allclose(lines["fielding"].y, 100 * expected, rtol=0, atol=1e-12)
    [gain] = [trace for trace in client_gain_figure(arms, found).validated().data if trace.name]
    assert (gain.name, gain.y[0], gain.y[-1]) == ("fielding", 0.0, 12.5)


@pytest.mark.slow
def test_figures_stay_small_with_many_arms_and_clusters(tmp_path):
    directory = a_folder(tmp_path, seeds=(0,))
    summary = summarise_directory(directory, directory.reported_runs())
    first = summary.rows[0].runs[0]
    many = 20_000
    records = [
        replace(
            record,
            members=np.arange(many),
            client_accuracy=np.linspace(0, 1, many).astype(np.float32),
            client_label=None,
        )
        for record in first.records
    ]
    run = ReportedRun("global", 0, {}, records, TIMING)
    arms = [Arm(f"arm {index}", [run], summary.rows[0].curves, index) for index in range(22)]
    found = {arm.name: [at_the_horizon(run, 1e9)] for arm in arms}
    figure = cluster_figure(arms, found).validated()
    assert [len(trace.x) for trace in figure.data] == [400] * 22
    assert len(client_accuracy_figure(arms, found).validated().to_json()) < 200_000
