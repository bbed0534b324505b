"""The kinds of data sets: how each lists its samples, with the preparation of its paper as default."""
