"""The card that goes with a saved model: what it is, what it was fitted on, how well it did, how to use it."""

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

Forecasts {h} steps of {series} at frequency `{freq}`, from a look-back of {input_size}.

| | |
|---|---|
| parameters | {parameters:,} |
| scheduling | {scheduling} |
| state | {state} |
| mixing between series | {mixing} |
| normalisation of a window | {normalization} |
| steps of training | {steps:,} (best at {best_step:,}){teachers} |
| mean absolute error on held-out windows, in deviations | {validation} |
| seed | {seed} |

```python
from leapts import LeapTS

model = LeapTS.load("path/to/this/folder")
forecast = model.predict(level=[80, 95])
```

The folder holds the last {input_size} values of every series, to forecast from.
"""

# What the Hub shows beside a model, in the form it asks for.
_RESULTS = """model-index:
- name: LeapTS
  results:
  - task:
      type: time-series-forecasting
    dataset:
      name: the last steps of the data it was fitted on, held out
      type: held-out
    metrics:
    - name: mean absolute error, in deviations of each series
      type: mae
      value: {value!r}
"""


def model_card(fitted: Predictor) -> str:
    """The card's text, in Markdown."""
    config, report = fitted.config, fitted.report
    best = report.best_validation
    return _TEMPLATE.format(
        results="" if best is None else _RESULTS.format(value=best),
        h=config.h,
        series=counted(len(fitted.tail), "series"),
        freq=fitted.tail.freq,
        input_size=config.input_size,
        parameters=sum(parameter.numel() for parameter in fitted.model.parameters()),
        scheduling=config.scheduling.kind,
        state=config.state.kind,
        mixing=config.mixing.kind,
        normalization=config.normalization,
        steps=report.steps,
        best_step=report.best_step,
        teachers=f", after {fitted.training.distill_from} teachers" if fitted.training.distill_from else "",
        validation="none held out" if best is None else f"{best:.4f}",
        seed=fitted.training.random_seed,
    )
