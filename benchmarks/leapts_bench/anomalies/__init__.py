"""The Numenta Anomaly Benchmark: its data, its scorer, our detector and two others."""
