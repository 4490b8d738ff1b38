"""Published settings of the baselines: sizes, learning rates and batch sizes from papers and authors' scripts.

Settings for single data sets are used where they exist; data sets without any use those of ETTh1. Of scripts with a
setting for each horizon, that of the shortest is used. All but N-HiTS and N-BEATS are trained on MSE; the rest of the
training is that of the benchmark. Scripts stop after a few epochs without improvement, with learning rates halved after
each epoch. Here rates decay more slowly, and early stopping would leave a model half trained, so there is none.
"""

import math
from typing import Any

from leapts.datasets.catalogue import find
from leapts_bench.baselines.neural import STANDARDISED
from leapts_bench.runs import BaselineDesign, Learning, Run

# So large that the Huber loss equals half the squared error.
_SQUARED = 1000.0
# Ten epochs with a validation check after each, as most authors have.
_EPOCHS = 10
_LOOKS = 10
# The script of N-HiTS counts steps of this many univariate windows, and trains on MAE, which is the Huber loss with a
# small threshold.
_BY_STEPS = ("N-HiTS", "N-BEATS")
_STEPS = 1000
_ROWS = 256
_ABSOLUTE = 0.01
# ILI has a fourteenth of the windows of ETTh1. Models without settings for it take as many steps as on ETTh1.
_EPOCHS_ON_ILI = 100
_WITH_SETTINGS_FOR_ILI = ("DLinear", "PatchTST", "TimesNet")

# A subset of another data set uses the settings of that one.
_PART_OF = {"Electricity7": "Electricity"}

Options = dict[str, Any]

_ITRANSFORMER_128: Options = {"hidden_size": 128, "d_ff": 128}
_ITRANSFORMER_512: Options = {"hidden_size": 512, "d_ff": 512, "e_layers": 3}
_PATCHTST_OF_TWO_LAYERS: Options = {"encoder_layers": 2, "n_heads": 8}
_AMPLIFIER_INTERACTING: Options = {"hidden": 512, "interact": True}
_TIMEMIXER: Options = {"d_model": 16, "d_ff": 32, "e_layers": 2, "down_sampling_layers": 3, "channel_independence": 1}

# Model options, in general and for single data sets.
_MODELS: dict[str, tuple[Options, dict[str, Options]]] = {
    "DLinear": ({"moving_avg_window": 25}, {}),
    "TSMixer": (
        {"n_block": 6, "ff_dim": 512, "dropout": 0.9},
        {
            "ETTh2": {"n_block": 4, "ff_dim": 8},
            "ETTm1": {"ff_dim": 16},
            "ETTm2": {"n_block": 2, "ff_dim": 64},
            "Weather": {"n_block": 4, "ff_dim": 32, "dropout": 0.3},
            "Electricity": {"n_block": 4, "ff_dim": 64, "dropout": 0.7},
        },
    ),
    "TimeMixer": (_TIMEMIXER, {"Weather": {"e_layers": 3}, "Electricity": {"e_layers": 3}}),
    "iTransformer": (
        {"hidden_size": 256, "d_ff": 256, "e_layers": 2},
        {
            **dict.fromkeys(("ETTh2", "ETTm1", "ETTm2", "Exchange"), _ITRANSFORMER_128),
            **dict.fromkeys(("Weather", "Electricity", "SZ-taxi"), _ITRANSFORMER_512),
        },
    ),
    "N-HiTS": ({"n_pool_kernel_size": [2, 2, 2], "n_freq_downsample": [24, 12, 1]}, {}),
    "N-BEATS": ({}, {}),
    # With the published layer norm only the linear part can be trained, at any size: see the decision page.
    "TiDE": (
        {
            "hidden_size": 16,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "decoder_output_dim": 1,
            "temporal_decoder_dim": 1,
            "dropout": 0.0,
            STANDARDISED: True,
        },
        {name: {STANDARDISED: False} for name in ("ETTm1", "Weather", "Electricity")},
    ),
    # Its authors use a look-back of 336. These are the scripts behind the published figures for 96.
    "PatchTST": (
        {
            "hidden_size": 512,
            "n_heads": 2,
            "linear_hidden_size": 2048,
            "encoder_layers": 1,
            "dropout": 0.1,
            "fc_dropout": 0.1,
            "revin_subtract_last": False,
            "patch_len": 16,
            "stride": 8,
        },
        {
            "ETTh2": {"encoder_layers": 3, "n_heads": 4},
            "ETTm2": {"encoder_layers": 3, "n_heads": 16},
            "Weather": {"encoder_layers": 2, "n_heads": 4},
            "ILI": {"encoder_layers": 4, "n_heads": 4, "hidden_size": 1024},
            **dict.fromkeys(("Exchange", "Electricity"), _PATCHTST_OF_TWO_LAYERS),
        },
    ),
    "TimesNet": (
        {"hidden_size": 32, "conv_hidden_size": 32, STANDARDISED: True},
        # The width of 768 in the scripts for ILI gives hundreds of millions of weights, too many for two cores.
        {"ETTh1": {"hidden_size": 16}, "Electricity": {"hidden_size": 256, "conv_hidden_size": 512}},
    ),
    "Amplifier": (
        {"hidden": 64},
        {
            "ETTm1": {"hidden": 128},
            # Weather and SZ-taxi have many series and no settings; they use those of a data set with many series.
            **dict.fromkeys(("Electricity", "Weather", "SZ-taxi"), _AMPLIFIER_INTERACTING),
        },
    ),
    "AMD": ({}, {"ETTh2": {"patch": 4, "alpha": 1.0}, "ETTm2": {"patch": 8}, "Exchange": {"patch": 4}}),
}

# Learning rate and batch size, in general and for single data sets.
_LEARNING: dict[str, tuple[tuple[float, int], dict[str, tuple[float, int]]]] = {
    "DLinear": (
        (5e-3, 32),
        {
            "ETTh2": (5e-2, 32),
            "ETTm1": (1e-4, 8),
            "Exchange": (5e-4, 8),
            "ILI": (5e-2, 32),
            "Weather": (1e-4, 16),
            "Electricity": (1e-3, 16),
        },
    ),
    "TSMixer": ((1e-4, 32), {"ETTm2": (1e-3, 32)}),
    # ILI is too short for batches of 128, and its scripts have no other.
    "TimeMixer": ((1e-2, 128), {"ETTm1": (1e-2, 16), "ILI": (1e-2, 16), "Electricity": (1e-2, 32)}),
    "iTransformer": ((1e-4, 32), {"Electricity": (5e-4, 16)}),
    # The authors' code uses one window per step, with all its series, which takes too long here. Rates grow
    # with the batch: of 1, 4, 16 and 32 times the published ones validation windows chose that.
    "TiDE": (
        (32 * 9.8e-4, 32),
        {
            "ETTh2": (32 * 2.2e-4, 32),
            "ETTm1": (32 * 8.4e-5, 32),
            "Weather": (32 * 3e-5, 32),
            "Electricity": (32 * 1e-3, 32),
        },
    ),
    "PatchTST": ((1e-4, 32), {"Electricity": (1e-4, 16)}),
    "TimesNet": ((1e-4, 32), {}),
    "Amplifier": (
        (2e-2, 256),
        {"ETTm1": (2e-2, 32), **dict.fromkeys(("Electricity", "Weather", "SZ-taxi"), (5e-3, 16))},
    ),
    # Our implementation has its own rate: at the authors' rate, validation errors hardly fall.
    "AMD": ((1e-4, 32), {}),
}


def baseline_run(name: str, dataset: str, *, input_size: int, horizon: int, seed: int = 1) -> Run:
    """Create a run of a baseline at its published settings."""
    options, own = _MODELS[name]
    whose = _PART_OF.get(dataset, dataset)
    chosen = _fitted_to({**options, **own.get(whose, {})}, input_size, horizon)
    return Run(
        dataset=dataset,
        horizon=horizon,
        input_size=input_size,
        model=BaselineDesign(name=name, options=chosen),
        training=_by_steps(dataset, input_size + horizon) if name in _BY_STEPS else _by_epochs(name, dataset, whose),
        seed=seed,
    )


def _by_epochs(name: str, dataset: str, whose: str) -> Learning:
    usual, special = _LEARNING[name]
    rate, batch = special.get(whose, usual)
    is_short = dataset == "ILI" and name not in _WITH_SETTINGS_FOR_ILI
    epochs = _EPOCHS_ON_ILI if is_short else _EPOCHS
    return Learning(epochs=epochs, batch_size=batch, learning_rate=rate, huber_delta=_SQUARED, looks=_LOOKS)


def _by_steps(dataset: str, window: int) -> Learning:
    row = find(dataset)
    assert row.split is not None, f"{dataset} has no borders to count windows between"
    batch = max(1, round(_ROWS / row.series))  # a window has all series
    epochs = _STEPS / math.ceil((row.split.train.stop - window + 1) / batch)
    return Learning(epochs=epochs, batch_size=batch, learning_rate=1e-3, huber_delta=_ABSOLUTE, looks=_LOOKS)


def _fitted_to(options: Options, input_size: int, horizon: int) -> Options:
    """Limit options that depend on the size of the window."""
    fitted = dict(options)
    if "down_sampling_layers" in options:  # each halves the look-back, which must be divisible
        halvings = (input_size & -input_size).bit_length() - 1
        fitted["down_sampling_layers"] = min(options["down_sampling_layers"], halvings)
    if "n_freq_downsample" in options:  # cannot be coarser than the horizon
        fitted["n_freq_downsample"] = [min(horizon, rate) for rate in options["n_freq_downsample"]]
    return fitted
