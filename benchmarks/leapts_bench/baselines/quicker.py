"""Faster replacements of blocks of neuralforecast's modules, with the same weights and forecasts."""

from torch import nn

from leapts_bench.baselines.dropout import PackedDropout
from leapts_bench.baselines.kernels import MergedKernels
from leapts_bench.baselines.mixing import FoldedMixing, can_fold


def quicken(network: nn.Module) -> None:
    """Replace slow blocks of a network by faster ones."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            quicker = _quicker(child, parent)
            if quicker is not None:
                setattr(parent, name, quicker)


def _quicker(block: nn.Module, parent: nn.Module) -> nn.Module | None:
    """Return the replacement of a block; blocks are found by name, since the package need not be installed."""
    match type(block).__name__:
        case "Inception_Block_V1":
            assert isinstance(block.kernels, nn.ModuleList)
            return MergedKernels(block.kernels)
        case "PastDecomposableMixing" if can_fold(block):
            return FoldedMixing(block)
        # TSMixer has so many hidden values that drawing the dropout mask takes half of a step.
        case "Dropout" if type(parent).__name__ == "FeatureMixing":
            assert isinstance(block.p, float)
            return PackedDropout(block.p)
        case _:
            return None
