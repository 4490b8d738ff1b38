"""Names of schedulers and state cells: the built-in kinds and those that programs register.

Torch is not imported here, so that options can be read without it. A package that offers a kind by an entry point is
imported when the caller of `fit` names that kind, never because a model folder names it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel

from leapts.errors import ConfigError
from leapts.messages import nearest, quoted


@dataclass(frozen=True)
class Registry:
    """Options class and factory of every kind of one part of the model."""

    noun: str  # for messages, as the next
    function: str
    group: str  # of entry points
    options: dict[str, type[BaseModel]] = field(default_factory=dict)
    factories: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def declare(self, *options: type[BaseModel]) -> None:
        """Add options of built-in kinds, whose factories need torch and follow later."""
        self.options.update({one.model_fields["kind"].default: one for one in options})

    def register(self, kind: str, factory: Callable[..., Any], options: type[BaseModel]) -> None:
        """Add a kind.

        Raises:
            ConfigError: When the options do not name the kind, or other options have its name.
        """
        named = options.model_fields.get("kind")
        if named is None or named.default != kind:
            raise ConfigError(f"{options.__name__} needs this field to be {kind!r}: kind: Literal[{kind!r}] = {kind!r}")
        known = self.options.get(kind, options)
        if (known.__module__, known.__qualname__) != (options.__module__, options.__qualname__):
            raise ConfigError(f"{kind!r} is {known.__module__}.{known.__qualname__} already; choose another name")
        self.options[kind] = options
        self.factories[kind] = factory

    def load(self, kind: object) -> None:
        """Import the installed package that offers a kind, unless the kind is registered."""
        offer = None if kind in self.options else self._offer(kind)
        if offer is None:
            return
        offer.load()
        if kind not in self.options:
            raise ConfigError(f"{offer.value} offers the {self.noun} {kind!r}, but does not call {self.function}")

    def _offer(self, kind: object) -> EntryPoint | None:
        return next((offer for offer in entry_points(group=self.group) if offer.name == kind), None)

    def unknown(self, kind: object) -> str:
        """Explain that a kind is not registered, and how to register it."""
        known = ", ".join(self.options)
        if not isinstance(kind, str):
            return f"give the kind of {self.noun}, one of {known}"
        offer = self._offer(kind)
        if offer is not None:
            return f"the {self.noun} {kind!r} is not registered; import {offer.module} first: it offers this kind"
        near = nearest(kind, self.options)
        hint = f"did you mean {near!r}? " if near else ""
        return (
            f"the {self.noun} {quoted(kind)} is not registered; {hint}install and import the package that has it, "
            f"or call {self.function} first (known: {known})"
        )


SCHEDULERS = Registry("scheduler", "leapts.register_scheduler", "leapts.schedulers")
STATE_CELLS = Registry("state cell", "leapts.register_state_cell", "leapts.state_cells")
_PARTS = {"scheduling": SCHEDULERS, "state": STATE_CELLS}


def load_named_kinds(model: Mapping[str, Any]) -> None:
    """Import the installed packages that offer the kinds in a caller's model options."""
    for name, registry in _PARTS.items():
        part = model.get(name)
        registry.load(part.get("kind") if isinstance(part, Mapping) else part)


def missing_kind(model: object) -> str | None:
    """Explain which kind of a stored model is not registered, if any; import nothing."""
    for name, registry in _PARTS.items():
        part = model.get(name) if isinstance(model, Mapping) else None
        kind = part.get("kind") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and kind not in registry.options:
            return registry.unknown(kind)
    return None
