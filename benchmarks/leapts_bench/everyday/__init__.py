"""Back-tests of LeapTS by its defaults on everyday sets: point forecasts, quantiles, and totals over the horizon."""
