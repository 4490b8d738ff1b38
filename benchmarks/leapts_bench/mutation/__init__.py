"""Tests of the tests: small faults put into the code one at a time, each of which the tests ought to notice.

Run with `python -m leapts_bench.mutation`; the figures are on the page of the campaigns.
"""
