"""Other models under the same protocol: the same windows, scaling, training loop and scores.

Those of neuralforecast are that package's own modules; Amplifier and AMD are compact implementations of ours.
"""

from leapts_bench.baselines.building import BASELINES, CHEAP, COSTLY, PeerModel, build_peer, is_available
from leapts_bench.baselines.settings import baseline_run

__all__ = ["BASELINES", "CHEAP", "COSTLY", "PeerModel", "baseline_run", "build_peer", "is_available"]
