"""Figures on single visits: what each round waited for, and which clients closed rounds.

Pure functions over the rows of `visits.parquet` and the records of a run; how they are drawn is decided in
`experiments/results/report/why`.
"""
