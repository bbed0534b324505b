from __future__ import annotations

from benchmarks.asynchronous.buffered import buffered_figures


def test_each_size_is_measured_always_online_and_by_day_and_night() -> None:
    found = buffered_figures(2_000, 20, 1, lambda text: None, sizes={1: (60, 20), 10: (20, 5)})
    names = [figure.name for figure in found]
    assert names == ["buffered-1-always", "buffered-10-always", "buffered-1-diurnal", "buffered-10-diurnal"]
    assert all(figure.value > 0 and figure.ratio is not None for figure in found)
    assert [figure.target is not None for figure in found] == [True, True, False, False]
