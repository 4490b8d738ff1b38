"""Data sets: the catalogue, downloads, synthetic scenarios, and small sets that ship with the package."""
