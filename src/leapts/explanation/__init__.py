"""Explain forecasts: exact sums, interventions, and what changed between two forecasts."""
