"""Campaigns that do to LeapTS what the world may do: dirty data, crashes, full disks, hostile files, strangers.

Each campaign is cut into units that a seed or a name makes repeatable; the tests run a small share of the same units.
"""
