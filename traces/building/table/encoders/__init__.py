"""What makes columns of a table, or an array, the rows of `features.npy`; their mean and deviation."""
