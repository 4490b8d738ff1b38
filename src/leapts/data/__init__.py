"""Read tables (`reader`, `columns`), validate them (`validation`), and cut the `Panel` into windows (`windows`).

Nothing is imported here, so that listing the catalogue is fast.
"""
