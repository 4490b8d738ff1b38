"""The served models by name; a replaced model folder is read again."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from leapts.errors import ConfigError, LeapTSError
from leapts.messages import nearest, quoted
from leapts.server.model import Identity, ServedModel, identity_of
from leapts.server.problems import BAD_REQUEST, NO_SUCH_MODEL, Problem


class ModelRegistry:
    """Models by name. No part of a request becomes a path."""

    def __init__(self, folders: Iterable[str | Path]) -> None:
        """Read all model folders, given as paths or `NAME=PATH`; by default a model has the name of its folder.

        Raises:
            ConfigError: If two models have the same name.
            ModelFileError: If a folder cannot be read.
        """
        self._folders: dict[str, Path] = {}
        for folder in folders:
            name, path = _split_name(str(folder))
            if name in self._folders:
                raise ConfigError(f"two models have the name {quoted(name)}; name one of them: OTHER={path}")
            self._folders[name] = path
        if not self._folders:
            raise ConfigError("there is no model to serve; give at least one folder that leapts fit wrote")
        self._models = {name: ServedModel.load(name, path) for name, path in self._folders.items()}
        self._failed: dict[str, Identity | None] = {}  # versions whose failure is logged

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    def find(self, name: str | None) -> ServedModel:
        """Find a model by name; without a name, the only one.

        Raises:
            Problem: If there is no such model, or several and no name.
        """
        if name is None and len(self._models) == 1:
            return next(iter(self._models.values()))
        if name is not None and name in self._models:
            return self._models[name]
        names = list(self._models)
        known = ", ".join(quoted(one) for one in names[:8])
        if name is None:
            raise Problem(BAD_REQUEST, f"{len(names)} models are served", f"set model to one of {known}")
        near = nearest(name[:100], names)
        hint = f"did you mean {quoted(near)}?" if near else f"the models are {known}"
        raise Problem(NO_SUCH_MODEL, f"there is no model {quoted(name[:100])}", hint)

    async def watch(self, every: float, log: Callable[[str, str, str], None]) -> None:
        """Check the folders again and again, and read those that were replaced.

        If a folder cannot be read, the former version stays, and the folder is tried again. `log` is called with the
        model, the outcome (`loaded` or `failed`) and a message.
        """
        while True:
            await asyncio.sleep(every)
            for name, path in self._folders.items():
                identity = await asyncio.to_thread(identity_of, path)
                if identity == self._models[name].identity:
                    continue
                try:
                    self._models[name] = await asyncio.to_thread(ServedModel.load, name, path)
                except LeapTSError as error:
                    if self._failed.get(name, ()) != identity:
                        log(name, "failed", f"model {quoted(name)} was not loaded again: {error}")
                    self._failed[name] = identity
                else:
                    log(name, "loaded", f"model {quoted(name)} was replaced: version {self._models[name].version}")


def _split_name(folder: str) -> tuple[str, Path]:
    name, equals, path = folder.partition("=")
    if equals and name and "/" not in name and not Path(folder).exists():
        return name, Path(path)
    return Path(folder).resolve().name, Path(folder)
