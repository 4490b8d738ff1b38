"""Explain forecasts: exact sums, interventions, counterfactual pasts, and what changed between two forecasts."""
