"""The kernel: virtual time, messages, ports, seeding, ledgers and the run log.

It imports nothing else of this project: the coordinator and everything it needs are passed in.
"""
