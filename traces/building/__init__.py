"""Building trace folders from the published files of data sets."""
