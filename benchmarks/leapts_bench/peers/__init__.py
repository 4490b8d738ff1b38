"""Other models under the same protocol: the same windows, scaling, training loop and scores.

Those of neuralforecast are that package's own modules; Amplifier and AMD are compact implementations of ours.
"""

from leapts_bench.peers.building import CHEAP, COSTLY, PEERS, PeerModel, build_peer, is_available
from leapts_bench.peers.settings import peer_run

__all__ = ["CHEAP", "COSTLY", "PEERS", "PeerModel", "build_peer", "is_available", "peer_run"]
