"""Write the model card of a saved model, in Markdown."""

from leapts.forecasting.predictor import Predictor
from leapts.messages import counted

_TEMPLATE = """---
library_name: leapts
pipeline_tag: time-series-forecasting
tags:
- time-series-forecasting
- leapts
{results}---

# LeapTS model

Forecasts {h} steps of {series} at frequency `{freq}`, from an input of {input_size} steps.

| | |
|---|---|
| parameters | {parameters:,} |
| scheduling | {scheduling} |
| state | {state} |
| channel mixing | {mixing} |
| window normalization | {normalization} |
| training steps | {steps:,} (best at {best_step:,}){teachers} |
| validation MAE, in standard deviations of each series | {validation} |
| seed | {seed} |

```python
from leapts import LeapTS

model = LeapTS.load("path/to/this/folder")
forecast = model.predict(level=[80, 95])
```

The folder holds the names of the series and the last {input_size} values of each, to forecast from.
"""

# The results that the Hub shows with a model, in its format.
_RESULTS = """model-index:
- name: LeapTS
  results:
  - task:
      type: time-series-forecasting
    dataset:
      name: validation windows at the end of the training data
      type: held-out
    metrics:
    - name: mean absolute error, in standard deviations of each series
      type: mae
      value: {value!r}
"""


def model_card(predictor: Predictor) -> str:
    """Fill in the model card."""
    config, report, teachers = predictor.config, predictor.report, predictor.training.distill_from
    best = report.best_validation
    return _TEMPLATE.format(
        results="" if best is None else _RESULTS.format(value=best),
        h=config.h,
        series=counted(len(predictor.tail), "series"),
        freq=predictor.tail.freq,
        input_size=config.input_size,
        parameters=sum(parameter.numel() for parameter in predictor.model.parameters()),
        scheduling=config.scheduling.kind,
        state=config.state.kind,
        mixing=config.mixing.kind,
        normalization=config.normalization,
        steps=report.steps,
        best_step=report.best_step,
        teachers=f", distilled from {teachers} teachers" if teachers else "",
        validation="none held out" if best is None else f"{best:.4f}",
        seed=predictor.training.random_seed,
    )
