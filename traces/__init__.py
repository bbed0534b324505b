"""Traces: which data reach which client, when; and which clients are online, when."""
