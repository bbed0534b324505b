"""The builder `table`: trace folders of tables of features or images, as CSV, Parquet or Arrow.

Two passes: `keys.py` reads who has a row, when, and its class, `choosing.py` decides which rows are used, and
`build.py` streams their features.
"""
