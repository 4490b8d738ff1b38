"""`LeapTS`: the estimator that users fit, forecast with, save and load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, overload

from leapts.data.panel import Panel
from leapts.errors import ConfigError, ModelFileError, NotFittedError
from leapts.forecasting.cross_validation import Backtest, interval_scores
from leapts.forecasting.fit import fit, update
from leapts.forecasting.fitted_model import FittedModel
from leapts.forecasting.forecast import Samples
from leapts.forecasting.held_out import calibration_of
from leapts.forecasting.intervals import Level, as_list
from leapts.forecasting.params import suggest_names, whole_number
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.progress import ShowProgress, progress_bar
from leapts.forecasting.trace_frame import Trace
from leapts.training.distributed import Workers

Levels = Sequence[Level] | None
OnFit = Callable[["LeapTS"], None] | None


class LeapTS(FittedModel):
    """Forecasts many time series many steps ahead, and records how each forecast was made.

    Only `h` is required. Options that are left out are chosen from the data; `auto_config_` lists them with reasons.

    Args:
        h: Horizon: steps to forecast.
        input_size: Look-back: steps of history used for a forecast.
        freq: Frequency of the data, a pandas alias or an integer step; by default inferred from the timestamps.
        id_col: Column of series names.
        time_col: Column of timestamps.
        target_col: Column of values.
        layout: `long`, `wide`, or `auto`: found from the columns.
        fill: Imputation of gaps and missing values: `interpolate`, `ffill` or a number; by default they are errors.
        duplicates: Which of several rows with the same series and timestamp to keep: `first`, `last`, or `error`.
        futr_exog_list: Covariates that are known over the horizon; by default the columns that continue in rows without
            a target at the end of the data.
        hist_exog_list: Covariates that are known up to the forecast.
        stat_exog_list: Covariates that are constant in a series.
        pad_short: Whether to accept series shorter than a window; the steps they lack are masked.
        loss: `quantile` learns quantiles, whose median is the point forecast; `huber` a point forecast alone.
        combine: `auto`: the network and simple forecasts, weighted by their validation errors; `none`: the network.
        init: Weights to start from: `random`, `pretrained`, or `auto`: random, then the best of both and their mean.
        point: `median`, or `mean` where totals matter: the mean of the learned quantiles.
        support: Values that can occur: `real`, `positive`, `count` or two limits; by default found for each series.
        val_size: Steps at the end of every series held out for validation checks and calibration.
        max_steps: Training steps.
        batch_size: Windows per training step.
        learning_rate: Learning rate of the first step; it decays from there.
        random_seed: Seed of all random numbers.
        model: Further options of the network: a mapping, or a `leapts.config.ModelConfig`.
        training: Further options of training: a mapping, or a `leapts.config.TrainingConfig`.
        alias: Name of the column of forecasts.
    """

    @staticmethod
    def pretrained(h: int, **options: Any) -> "LeapTS":
        """Make a model that forecasts without training: `LeapTS.pretrained(h=24).predict(df)`.

        Args:
            h: Horizon, up to 1,000 steps.
            options: Options of reading, `support` and `alias`, as for `LeapTS`.
        """
        from leapts.forecasting.zero_shot import ZeroShotLeapTS

        return ZeroShotLeapTS(h, init="pretrained", **options)

    @suggest_names
    def fit(
        self,
        df: Any,
        *,
        static_df: Any = None,
        progress: ShowProgress = "auto",
        checkpoint_dir: str | Path | None = None,
        resume: bool = False,
        workers: Workers | None = None,
    ) -> Self:
        """Fit a new model.

        Args:
            df: A frame (pandas, polars, pyarrow), or the path of a CSV or Parquet file, or `-` for standard input.
            static_df: Static covariates, one row for each series; without `stat_exog_list` all of its columns.
            progress: `auto` shows a bar in terminals and notebooks, False none; or called after every training step.
            checkpoint_dir: Folder for the state of training, so that it can be resumed after a crash.
            resume: Whether to resume from the state in that folder.
            workers: Processes to train with. By default those of torch's process group, if this process is in one:
                all of them call `fit` alike, and end with the same model. `SingleProcess()` fits in this one alone.

        Raises:
            DataError: When the data cannot be used, with the place and what to do.
            TrainingError: When training diverged; the last good weights are kept, and can forecast.
            FolderInUseError: When another fit uses that folder.
            WorkerLostError: When another process is gone; `resume` continues from the checkpoint.
        """
        if resume and checkpoint_dir is None:
            raise ConfigError("resume=True needs checkpoint_dir: the folder of the interrupted fit")
        panel = self._input(df, static_df=static_df)
        with progress_bar(progress) as shown:
            place = {"checkpoint_dir": checkpoint_dir, "resume": resume}
            self._predictor = self._train(panel, progress=shown, on_failure=self._keep, workers=workers, **place)
        return self

    @overload
    def predict(
        self,
        df: Any = ...,
        *,
        futr_df: Any = ...,
        static_df: Any = ...,
        level: Levels = ...,
        quantiles: Levels = ...,
        n_samples: int = ...,
        random_seed: int = ...,
        do: Mapping[str, Any] | None = ...,
        return_trace: Literal[False] = ...,
    ) -> Any: ...

    @overload
    def predict(
        self,
        df: Any = ...,
        *,
        futr_df: Any = ...,
        static_df: Any = ...,
        level: Levels = ...,
        quantiles: Levels = ...,
        n_samples: int = ...,
        random_seed: int = ...,
        do: Mapping[str, Any] | None = ...,
        return_trace: Literal[True],
    ) -> tuple[Any, Trace]: ...

    @suggest_names
    def predict(
        self,
        df: Any = None,
        *,
        futr_df: Any = None,
        static_df: Any = None,
        level: Levels = None,
        quantiles: Levels = None,
        n_samples: int = 0,
        random_seed: int = 1,
        do: Mapping[str, Any] | None = None,
        return_trace: bool = False,
    ) -> Any:
        """Forecast the `h` steps after the end of every series.

        Args:
            df: History to forecast from, of the fitted series or of unseen ones; by default the data of the fit. A
                multivariate model needs exactly its own series.
            futr_df: Known-future covariates of the `h` steps after the end of every series.
            static_df: Static covariates of the series, as for `fit`; by default those of the fit.
            level: Prediction intervals, in percent: `[80, 95]`.
            quantiles: Quantiles instead of intervals: `[0.1, 0.9]`.
            n_samples: Sample paths, each a column `LeapTS-sample-1`, ...: sums over a path have honest intervals.
            random_seed: Seed of the sample paths.
            do: Decisions to change, others replayed: `{"scale": "long"}`, `{"gate": 0}`; see docs/how-to/explain.md.
            return_trace: Whether to return the trace too: one row for each leap.

        Returns:
            A frame of the same kind as the input, with a row for each series and step; with the trace, both.
        """
        predictor = self.predictor_
        history = predictor.tail if df is None else df
        panel = self._input(history, predictor, static_df=static_df, futr_df=futr_df)
        samples = None
        if n_samples:
            samples = Samples(whole_number("n_samples", n_samples), whole_number("random_seed", random_seed))
        needed = level is not None or quantiles is not None or samples is not None
        windows = predictor.windows(panel)
        run = self._under(do) if do else predictor.predict
        forecast = run(windows, "leaps" if return_trace else "nothing", quantiles=needed)
        frame = forecast.to_frame(level, quantiles, self.alias, samples)
        return (frame, forecast.to_trace()) if return_trace else frame

    @overload
    def cross_validation(
        self,
        df: Any,
        n_windows: int = ...,
        *,
        step_size: int | None = ...,
        refit: bool = ...,
        level: Levels = ...,
        static_df: Any = ...,
        return_coverage: Literal[False] = ...,
        progress: ShowProgress = ...,
        on_fit: OnFit = ...,
    ) -> Any: ...

    @overload
    def cross_validation(
        self,
        df: Any,
        n_windows: int = ...,
        *,
        step_size: int | None = ...,
        refit: bool = ...,
        level: Levels = ...,
        static_df: Any = ...,
        return_coverage: Literal[True],
        progress: ShowProgress = ...,
        on_fit: OnFit = ...,
    ) -> tuple[Any, dict[Level, float]]: ...

    @suggest_names
    def cross_validation(
        self,
        df: Any,
        n_windows: int = 1,
        *,
        step_size: int | None = None,
        refit: bool = False,
        level: Levels = None,
        static_df: Any = None,
        return_coverage: bool = False,
        progress: ShowProgress = "auto",
        on_fit: OnFit = None,
    ) -> Any:
        """Backtest: forecast the last windows of the data as if unknown. The fitted model does not change.

        Args:
            df: The data. Gaps that `fill` would interpolate are filled with the last value before them.
            n_windows: Number of windows, counted back from the end.
            step_size: Steps between cutoffs; by default `h`, so that windows do not overlap.
            refit: Whether to fit again before every window, instead of once before the first.
            level: Prediction intervals, in percent.
            static_df: Static covariates, as for `fit`.
            return_coverage: Whether to return too the share of actual values inside the intervals of each level.
            progress: As for `fit`.
            on_fit: Called with each model that was fitted, before it forecasts.

        Returns:
            A frame with the columns of a forecast, the cutoff and the actual values; with the coverage, both, the
            latter as `{80: 0.79, 95: 0.94}`.
        """
        config, levels = self.fit_config(), as_list("level", level)
        step = config.h if step_size is None else whole_number("step_size", step_size)
        plan = Backtest(config, whole_number("n_windows", n_windows), step, levels, refit=refit)
        panel = self._input(df, static_df=static_df).without_lookahead()
        with progress_bar(progress) as shown:

            def fit_known(known: Panel) -> Predictor:
                predictor = self._train(known, progress=shown)
                if on_fit is not None:
                    copy = LeapTS(**self.get_params())
                    copy._keep(predictor)
                    on_fit(copy)
                return predictor

            frame = plan.run(panel, fit_known)
        if not return_coverage:
            return frame
        return frame, interval_scores(frame, levels, self.alias, panel.style.target_col).coverage

    @suggest_names
    def update(self, df: Any, *, max_steps: int | None = None, progress: ShowProgress = "auto") -> Self:
        """Continue training from the current weights on newer data; the scaling of fitted series stays.

        The end of every series is held out as in `fit`, for validation checks and calibration.

        Args:
            df: The data, as for `fit`.
            max_steps: Training steps; by default a fifth of the first fit's.
            progress: As for `fit`.
        """
        steps = None if max_steps is None else whole_number("max_steps", max_steps)
        panel, val_size = self._input(df, self.predictor_), self.fit_config().val_size
        with progress_bar(progress) as shown:
            self._predictor = update(self.predictor_, panel, val_size=val_size, max_steps=steps, progress=shown)
        return self

    @suggest_names
    def calibrate(self, df: Any) -> Self:
        """Calibrate the prediction intervals again, on data the model was not fitted on.

        Args:
            df: History with windows of `input_size + h` steps. Those of any series count; a multivariate model needs
                one window of each of its series.
        """
        predictor = self.predictor_
        panel = self._input(df, predictor).without_lookahead()
        predictor.require_frequency(panel)
        self._predictor = replace(predictor, calibration=calibration_of(predictor, predictor.require_usable(panel)))
        return self

    def save(self, path: str | Path) -> None:
        """Write the model as a folder: `config.json`, `model.safetensors` and a model card, in one atomic step."""
        from leapts.persistence.save import save  # the layer above imports this one

        save(self.predictor_, self.plain_params(), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model folder.

        Raises:
            ModelFileError: When it is none, is damaged, or was written by a newer version.
        """
        from leapts.persistence.save import load

        predictor, params = load(Path(path))
        try:
            model = cls(**params)
            model.fit_config()
            model.read_options()
        except (ConfigError, TypeError) as error:
            raise ModelFileError(f"{path}: its options are not valid ({error}); fit or copy it again") from error
        model._predictor = predictor
        return model

    @property
    def predictor_(self) -> Predictor:
        """The fitted network with its scaling and calibration.

        Raises:
            NotFittedError: Before the first fit.
        """
        if not hasattr(self, "_predictor"):
            raise NotFittedError("this LeapTS is not fitted yet; call fit first, or load a saved model")
        return self._predictor

    def _train(self, panel: Panel, **options: Any) -> Predictor:
        return fit(panel, self.fit_config(), **options)
