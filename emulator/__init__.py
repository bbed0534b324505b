"""The kernel: virtual time, messages, ports, seeding, ledgers and the run log.

It imports nothing else of this project; what it plays is handed to it.
"""
