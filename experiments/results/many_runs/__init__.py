"""One table for the runs of many run directories: which are compared, how, and the tests of differences."""
