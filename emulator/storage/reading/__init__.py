"""The files of a table, CSV or Parquet, read in batches of rows."""
