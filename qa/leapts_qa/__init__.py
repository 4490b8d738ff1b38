"""Stress suites: bad data, crashes, full disks, forged model folders, fuzzing, adversarial clients and load.

Each suite is split into units that a seed or a name makes repeatable; the tests run a small share of the same units.
"""
