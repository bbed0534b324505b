"""Drift as data: changes of what labels and features mean, for whom, when, and in which samples.

A change is *who* x *when* x *what* (`settings.py`). `changed.with_changes` applies a list of them to a
trace of any source: it draws who changes when (`spans.py`), finds the rows that differ (`rows.py`) and the
samples that change (`chosen.py`), maps labels (`labels.py`), names what is done to features
(`features.py`), and states the true concepts that follow (`concepts.py`).
"""
