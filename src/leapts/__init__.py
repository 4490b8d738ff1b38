"""LeapTS: forecasting as adaptive multi-horizon scheduling."""
