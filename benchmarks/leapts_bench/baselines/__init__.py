"""Baselines under the same protocol: the same windows, scaling, training loop and scores.

Most are the modules of neuralforecast; Amplifier and AMD are compact implementations of ours.
"""

from leapts_bench.baselines.building import BASELINES, CHEAP, COSTLY, BaselineModel, build_baseline, is_available
from leapts_bench.baselines.settings import baseline_run

__all__ = ["BASELINES", "CHEAP", "COSTLY", "BaselineModel", "baseline_run", "build_baseline", "is_available"]
