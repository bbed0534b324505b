import numpy as np
import pytest

from coordinator.federation.faults import PACKET_BYTES, Faults
from coordinator.population import FaultSettings
from emulator.arrays import Floats, Ints
from emulator.messages import Work
from emulator.seeding import RandomStreams
from tests.fakes import ints

INF = float("inf")


def faults(num_clients: int = 100, seed: int = 0, **settings) -> Faults:
    return Faults(FaultSettings(**settings), num_clients, RandomStreams(seed))


# -- byzantine ----------------------------------------------------------------------------------------------


def byzantine(*shares: float, kind: str = "sign_flip") -> list[dict]:
    return [{"kind": kind, "share": share} for share in shares]


def test_byzantine_clients_are_a_fixed_share_and_none_is_in_two_tables():
    first, second = faults(50, byzantine=byzantine(0.2, 0.5)).byzantine
    assert (len(first.clients), len(second.clients)) == (10, 25)
    assert not set(first.clients.tolist()) & set(second.clients.tolist())
    for group in (first, second):
        assert (np.diff(group.clients) > 0).all()


def test_byzantine_clients_follow_from_the_seed_and_a_further_table_leaves_the_first_as_they_are():
    alone = faults(byzantine=byzantine(0.3)).byzantine[0].clients
    assert faults(byzantine=byzantine(0.3, 0.4)).byzantine[0].clients.tolist() == alone.tolist()
    assert faults(byzantine=byzantine(0.3), seed=1).byzantine[0].clients.tolist() != alone.tolist()


def test_a_share_of_0_makes_nobody_byzantine():
    nobody = faults(byzantine=byzantine(0, kind="misreport"))
    assert nobody.clients("misreport").tolist() == []


def test_shares_that_fill_the_population_leave_no_client_honest():
    assert sum(len(group.clients) for group in faults(7, byzantine=byzantine(0.5, 0.5)).byzantine) == 7


def test_clients_of_one_kind_are_joined_over_tables():
    both = faults(50, byzantine=byzantine(0.1, 0.2))
    assert both.clients("sign_flip").tolist() == sorted(
        [*both.byzantine[0].clients.tolist(), *both.byzantine[1].clients.tolist()]
    )
    assert both.clients("misreport").tolist() == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"byzantine": byzantine(0.6, 0.5)}, r"sum to 1\.1; they must not exceed 1"),
        ({"byzantine": [{"kind": "misreport", "share": 0.1, "scale": 2}]}, "misreport has no scale"),
        (
            {"byzantine": [{"kind": "sleep", "share": 0.1}]},
            "'sign_flip', 'noise', 'label_flip' or 'misreport'",
        ),
        ({"byzantine": [{"kind": "noise", "share": -0.1}]}, "greater than or equal to 0"),
        ({"loss": 1.0}, "less than 1"),
        ({"crash": 1.1}, "less than or equal to 1"),
        ({"crashes": 0.1}, "did you mean 'crash'"),
    ],
)
def test_faults_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        FaultSettings(**wrong)


def test_a_table_alone_needs_no_list():
    assert FaultSettings(byzantine=byzantine(0.1)[0]) == FaultSettings(byzantine=byzantine(0.1))


def crash_s(population: Faults, number: int, clients: Ints, start_s: float, busy_s: Floats) -> Floats:
    """The instant at which each of `clients` crashes in its visit of dispatch `number`, or inf."""
    return population.visits(number, clients, Work.of(len(clients))).crash_s(start_s, busy_s)


# -- crashes --------------------------------------------------------------------------------------------


def test_without_crashes_no_client_crashes():
    assert crash_s(faults(), 0, ints(3, 4), 10.0, np.ones(2)).tolist() == [INF, INF]


def test_visits_crash_with_the_configured_probability_evenly_over_their_time():
    clients = np.arange(20_000)
    instants = crash_s(faults(crash=0.3), 5, clients, 100.0, np.full(20_000, 10.0))
    crashed = instants < INF
    assert crashed.mean() == pytest.approx(0.3, abs=0.01)
    assert ((instants[crashed] >= 100) & (instants[crashed] <= 110)).all()
    # Uniform: a mean of 105 and a standard deviation of 10 / sqrt(12), independent of the crash decision.
    assert instants[crashed].mean() == pytest.approx(105, abs=0.15)
    assert instants[crashed].std() == pytest.approx(10 / np.sqrt(12), abs=0.1)


def test_crashes_depend_on_the_dispatch_but_not_on_the_other_participants():
    population, busy_s = faults(crash=0.5), np.ones(50)
    whole = crash_s(population, 1, np.arange(50), 0.0, busy_s)
    assert crash_s(population, 1, np.arange(7, 12), 0.0, busy_s[:5]).tolist() == whole[7:12].tolist()
    assert crash_s(population, 2, np.arange(50), 0.0, busy_s).tolist() != whole.tolist()


# -- updates --------------------------------------------------------------------------------------------


def test_tasks_of_honest_clients_on_good_links_have_no_tampering():
    assert faults().tampering(0, ints(0, 1), ints(0, 0)) == {}
    flipping = faults(byzantine=byzantine(0.5, kind="label_flip"))
    assert flipping.tampering(0, np.arange(100), np.zeros(100, dtype=np.int64)) == {}


def test_sign_flippers_scale_and_noisy_ones_add():
    tables = [
        {"kind": "sign_flip", "share": 0.2, "scale": 4},
        {"kind": "noise", "share": 0.3, "scale": 2.5},
        {"kind": "sign_flip", "share": 0.1},
    ]
    population = faults(10, byzantine=tables)
    columns = population.tampering(0, np.arange(10), np.zeros(10, dtype=np.int64))
    assert sorted(columns) == ["noise", "scale"]
    strong, noisy, weak = (group.clients for group in population.byzantine)
    scale, noise = np.ones(10), np.zeros(10)
    scale[strong], scale[weak], noise[noisy] = -4, -1, 2.5
    assert columns["scale"].tolist() == scale.tolist()
    assert columns["noise"].tolist() == noise.tolist()


def test_a_wave_without_byzantine_clients_has_no_tampering():
    population = faults(10, byzantine=byzantine(0.2))
    honest = np.setdiff1d(np.arange(10), population.byzantine[0].clients)
    assert population.tampering(0, honest, np.zeros(8, dtype=np.int64)) == {}


@pytest.mark.parametrize("corruption", ["nan", "bits"])
def test_updates_are_corrupted_by_chance_task_by_task(corruption):
    population = faults(corrupt=0.25, corruption=corruption)
    client, model = np.repeat(np.arange(10_000), 2), np.tile(ints(0, 3), 10_000)
    columns = population.tampering(4, client, model)
    assert list(columns) == [corruption]
    hit = columns[corruption] == 1
    assert hit.mean() == pytest.approx(0.25, abs=0.01)
    both = hit.reshape(-1, 2).all(axis=1)
    assert both.mean() == pytest.approx(0.25**2, abs=0.01)  # the tasks of a client are independent
    again = population.tampering(4, client[50:60], model[50:60]).get(corruption, np.zeros(10))
    assert again.tolist() == columns[corruption][50:60].tolist()


def test_tasks_of_several_dispatches_are_tampered_with_as_those_of_each_alone():
    population = faults(corrupt=0.5)
    client, model = np.arange(50), np.zeros(50, dtype=np.int64)
    dispatch = np.where(client < 20, 3, 8)
    alone = {number: population.tampering(number, client, model)["nan"] for number in (3, 8)}
    assert alone[3].tolist() != alone[8].tolist()
    together = population.tampering(dispatch, client, model)["nan"]
    assert together.tolist() == [*alone[3][:20].tolist(), *alone[8][20:].tolist()]


# -- reports --------------------------------------------------------------------------------------------


def test_misreporters_permute_their_reports_always_the_same_way_and_others_report_the_truth():
    population = faults(40, byzantine=byzantine(0.25, kind="misreport"))
    misreporters = population.clients("misreport")
    true = np.tile(np.arange(6.0), (40, 1))
    reported = population.reported(np.arange(40), true)
    assert true.tolist() == [list(range(6))] * 40
    honest = np.setdiff1d(np.arange(40), misreporters)
    assert (reported[honest] == true[honest]).all()
    assert (np.sort(reported, axis=1) == true).all()
    assert (reported[misreporters] != true[misreporters]).any()
    # The same permutation in a later report, of other numbers and by other clients together.
    two = misreporters[[1, 4]]
    assert population.reported(two, 10 * true[:2]).tolist() == (10 * reported[two]).tolist()
    assert len({tuple(row) for row in reported[misreporters].tolist()}) > 1


def test_a_further_table_of_misreporters_leaves_the_reports_of_the_first_as_they_are():
    true = np.tile(np.arange(6.0), (40, 1))
    tables = byzantine(0.25, kind="misreport")
    first = faults(40, byzantine=tables).clients("misreport")
    alone = faults(40, byzantine=tables).reported(first, true[first])
    beside = faults(40, byzantine=[*tables, *byzantine(0.5, kind="misreport")])
    assert len(beside.clients("misreport")) == 30
    assert beside.reported(first, true[first]).tolist() == alone.tolist()


def test_every_permutation_of_a_report_is_as_likely():
    population = faults(60_000, byzantine=byzantine(1.0, kind="misreport"))
    reported = population.reported(np.arange(60_000), np.tile(np.arange(3.0), (60_000, 1)))
    _, counts = np.unique(reported, axis=0, return_counts=True)
    # 10,000 are expected of each, within five standard deviations of sqrt(60,000 x 1/6 x 5/6) = 91.
    assert len(counts) == 6
    assert np.abs(counts - 10_000).max() < 5 * 91


def test_without_misreporters_reports_are_not_even_copied():
    signal = np.ones((2, 6))
    assert faults(byzantine=byzantine(0.9)).reported(ints(0, 1), signal) is signal


# -- links ----------------------------------------------------------------------------------------------


def work(download, upload) -> Work:
    down = np.array(download, dtype=np.float64)
    return Work(down, np.array(upload, dtype=np.float64), np.zeros(len(down)), np.full(len(down), 7.0))


def test_a_link_without_loss_sends_what_there_is():
    whole = work([1000.0], [10.0])
    assert faults().sent(whole, ints(3), 0, 0) is whole


def test_extra_packets_are_negative_binomial():
    # 30,000 bytes are 20 packets; losses have a mean of 20 x 0.2 / 0.8 = 5 and a variance of 5 / 0.8.
    count = 40_000
    sent = faults(loss=0.2).sent(work([30_000.0] * count, [1.0] * count), np.arange(count), 3, 1)
    again = (sent.download_bytes - 30_000) / PACKET_BYTES
    assert (again >= 0).all()
    assert np.allclose(again, again.round(), atol=1e-9)
    assert again.mean() == pytest.approx(5, abs=0.05)
    assert again.var() == pytest.approx(5 / 0.8, abs=0.15)
    # One byte is one packet: lost with probability 0.2, twice with 0.04.
    resent = sent.upload_bytes - 1
    assert (resent >= 1).mean() == pytest.approx(0.2, abs=0.01)
    assert (resent >= 2).mean() == pytest.approx(0.04, abs=0.005)
    assert (sent.trained_samples == 7).all()


def test_packets_of_a_transfer_are_of_one_size():
    # 3,100 bytes are three packets of 1,033 1/3 bytes.
    sent = faults(loss=0.5).sent(work([3100.0] * 50, [0.0] * 50), np.arange(50), 0, 0)
    again = (sent.download_bytes - 3100) / (3100 / 3)
    assert np.allclose(again, again.round(), atol=1e-9)
    assert again.max() >= 1
    assert (sent.upload_bytes == 0).all()


def test_losses_follow_from_the_client_the_round_and_the_exchange_alone():
    population = faults(loss=0.3)

    def bytes_of(clients, number=1, exchange=0) -> list[float]:
        whole = work([1e6] * len(clients), [1e6] * len(clients))
        sent = population.sent(whole, np.array(clients), number, exchange)
        return [*sent.download_bytes.tolist(), *sent.upload_bytes.tolist()]

    assert bytes_of([3, 8, 9])[1::3] == bytes_of([8])
    assert len({tuple(bytes_of([8], *key)) for key in ((1, 0), (1, 1), (2, 0))}) == 3


def test_no_clients_send_nothing():
    assert len(faults(loss=0.3).sent(work([], []), ints(), 0, 0).download_bytes) == 0
