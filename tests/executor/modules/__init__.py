"""Modules as their users write them, for the tests: plain torch, and nothing of driftscale."""
