"""Old module names of release 0.1.0, importable for one more release.

`import leapts.metrics` gives the names of `leapts.forecasting.metrics` and warns. The table below is all there is:
nothing is imported unless a program asks for one of these names.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

RENAMED: dict[str, tuple[str, ...]] = {
    "leapts.adapters": ("leapts.integrations",),
    "leapts.adapters.neuralforecast": ("leapts.integrations.neuralforecast",),
    "leapts.adapters.sktime": ("leapts.integrations.sktime",),
    "leapts.analysis": ("leapts.forecasting.analysis",),
    "leapts.assembly": ("leapts.model.build",),
    "leapts.baselines": ("leapts.forecasting.baselines",),
    "leapts.core": ("leapts.model",),
    "leapts.data.catalogue": ("leapts.datasets.catalogue",),
    "leapts.data.loading": ("leapts.datasets.loading",),
    "leapts.data.options": ("leapts.config",),
    "leapts.data.writing": ("leapts.data.frames",),
    "leapts.export": ("leapts.persistence.onnx",),
    "leapts.forecaster": ("leapts.forecasting",),
    "leapts.forecaster.comparison": ("leapts.forecasting.comparison",),
    "leapts.hub": ("leapts.persistence.hub",),
    "leapts.intervals": ("leapts.forecasting.intervals",),
    "leapts.metrics": ("leapts.forecasting.metrics", "leapts.forecasting.evaluation"),
    "leapts.report.exports": ("leapts.report.encode",),
    "leapts.report.measures": ("leapts.report.collect",),
    "leapts.report.picture": ("leapts.report.plots",),
    "leapts.scaleout": ("leapts.integrations.ray",),
    "leapts.scaleout.partitions": ("leapts.integrations.ray.partitions",),
    "leapts.scaleout.trials": ("leapts.integrations.ray.tuning",),
    "leapts.scaleout.with_ray": ("leapts.integrations.ray.forecast",),
    "leapts.serve": ("leapts.server",),
    "leapts.tracking": ("leapts.training.loggers",),
    "leapts.tuning": ("leapts.integrations.tuning",),
}


class _RenamedModules(MetaPathFinder, Loader):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Claim the names of the table, and no others."""
        del path, target
        is_package = any(name.startswith(f"{fullname}.") for name in RENAMED)
        return ModuleSpec(fullname, self, is_package=is_package) if fullname in RENAMED else None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with the names of its successors, and warn."""
        new_names = RENAMED[module.__name__]
        text = f"{module.__name__} is now {' and '.join(new_names)}; the old name goes with release 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        for new_name in new_names:
            successor = importlib.import_module(new_name)
            kept = {name: value for name, value in vars(successor).items() if name[:2] != "__" or name == "__getattr__"}
            module.__dict__.update(kept)


def renamed_attribute(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module-level `__getattr__` that finds old names and warns.

    Args:
        module: The name of the module.
        names: The new name of each old one.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        text = f"{name} is now {names[name]}; the old name goes with release 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return find


def install() -> None:
    """Make the old names importable; a second call changes nothing."""
    if not any(isinstance(finder, _RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(_RenamedModules())
