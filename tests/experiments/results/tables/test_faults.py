import re

import numpy as np
import pytest

from experiments.results.pages import write_report
from experiments.results.tables.faults import fault_sentences
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import a_directory, a_record, a_run, store


def costs_with(**changes):
    """The costs of a run in whose only round `changes` happened."""
    run = a_run("global", 0, [0.5], **changes)
    return summarise([run], name="x", window=1, reference_arm="global").rows


def test_without_any_fault_there_is_no_section():
    assert fault_sentences({}, [], costs_with()) is None
    assert fault_sentences({"crash": 0.0, "loss": 0.0, "byzantine": []}, [], costs_with()) is None


def test_injected_faults_are_described_in_sentences():
    byzantine = [
        {"kind": "sign_flip", "share": 0.2, "scale": 4.0},
        {"kind": "noise", "share": 0.1, "scale": 2.5},
        {"kind": "label_flip", "share": 0.05, "scale": 1.0},
        {"kind": "misreport", "share": 0.125, "scale": 1.0},
    ]
    faults = {"crash": 0.02, "corrupt": 0.015, "corruption": "bits", "loss": 0.01, "byzantine": byzantine}
    run = a_run("global", 0, [0.5])
    run.header["num_clients"] = 2000
    assert fault_sentences(faults, [run], costs_with()) == [
        "20 % of the 2,000 clients send -4 times their update.",
        "10 % of the 2,000 clients add noise to their update, with 2.5 times its norm.",
        "5 % of the 2,000 clients train on flipped labels.",
        "12.5 % of the 2,000 clients permute their reports.",
        "In 2 % of the visits the client crashes, at any instant of the visit, and sends nothing back.",
        "1.5 % of the updates arrive corrupted: a bit is flipped in some of their numbers.",
        "Links lose 1 % of their packets, which are sent again and cost their bytes and time again.",
    ]


def test_byzantine_clients_without_logged_accuracies_name_the_key_that_logs_them():
    faults = {"byzantine": [{"kind": "sign_flip", "share": 0.5, "scale": 1.0}]}
    run = a_run("global", 0, [0.5])
    run.header["byzantine"] = {"sign_flip": [1, 3]}
    *_, last = fault_sentences(faults, [run], costs_with())
    assert "with round.log_client_accuracy = true" in last
    run.records[0] = a_record(0, client_accuracy=np.array([1, 0, 1, 0], dtype=np.float32))
    assert fault_sentences(faults, [run], costs_with()) == ["50 % of the clients send -1 times their update."]


def test_a_share_of_0_is_no_fault():
    faults = {"byzantine": [{"kind": "sign_flip", "share": 0.0, "scale": 1.0}]}
    run = a_run("global", 0, [0.5])
    run.header["byzantine"] = {"sign_flip": []}
    assert fault_sentences(faults, [run], costs_with()) is None


def test_updates_dropped_without_an_injected_fault_are_attributed_to_the_training():
    [sentence] = fault_sentences({}, [], costs_with(rejected=[1]))
    assert sentence.startswith("No faults were injected")


def test_reports_dropped_without_an_injected_fault_are_mentioned():
    [sentence] = fault_sentences({}, [], costs_with(nonfinite_reports=1))
    assert sentence.startswith("No faults were injected")


@pytest.mark.slow
def test_the_page_has_the_section_only_if_there_were_faults(tmp_path):
    healthy = a_directory(tmp_path / "healthy", ["global"], [0])
    store(healthy, a_run("global", 0, [0.25, 0.5]))
    page = write_report(healthy).read_text()
    assert 'id="faults"' not in page
    assert 'id="honest-clients"' not in page
    directory = a_directory(
        tmp_path / "faulty", ["global", "median"], [0], faults={"crash": 0.1, "corruption": "nan"}
    )
    for arm in directory.arms():
        by_client = np.array([1.0, 0.0, 0.5, 0.25], dtype=np.float32)
        run = a_run(arm, 0, [0.25, 0.5], crashed=[3], rejected=[0, 1], client_accuracy=by_client)
        run.header["byzantine"] = {"noise": np.array([1, 3])}
        store(directory, run)
    page = write_report(directory).read_text()
    section = page[page.index('<section id="faults">') :]
    section = section[: section.index("</section>")]
    assert "In 10 % of the visits the client crashes" in section
    assert all(
        f'<th scope="col">{heading}</th>' in section
        for heading in ("crashed visits", "updates dropped", "reports dropped")
    )
    assert "<td>2.0</td>" in section.replace("\n", "")
    assert "<td>4.0</td>" in section.replace("\n", "")
    apart = page[page.index('<section id="honest-clients">') :]
    cells = re.findall("<td>(.*?)</td>", apart[: apart.index("</table>")])
    assert cells == ["75.0 %", "reference", "12.5 %", "75.0 %", "+0.0 pp", "12.5 %"]
