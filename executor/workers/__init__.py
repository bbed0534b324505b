"""Executors in processes of their own: what they are told, who does what, and what comes back.

A worker is a process that trains and scores for a coordinator. Nothing here decides a result: cohorts and
slabs are cut as they are in one process, and sums are taken in the same order.
"""
