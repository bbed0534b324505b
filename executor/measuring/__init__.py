"""Timing the steps of a model on a device: the file that does so, and the module of a model as source."""
