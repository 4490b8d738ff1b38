"""Benchmark pages and charts, rendered from the results files alone."""
