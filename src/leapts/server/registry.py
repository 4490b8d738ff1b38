"""The models that are served, each by its name, and how a replaced folder takes the place of the old one."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leapts.errors import ConfigError, LeapTSError, ModelFileError
from leapts.forecasting import LeapTS
from leapts.forecasting.arrays import ArrayForecaster
from leapts.messages import nearest, quoted
from leapts.model.network import GatedFusion
from leapts.persistence.save import CONFIG, WEIGHTS
from leapts.server.problems import BAD_REQUEST, NO_SUCH_MODEL, Problem

Identity = tuple[int, ...]
_FILES = (CONFIG, WEIGHTS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Served:
    """One state of a model folder, kept by whoever began with it.

    Attributes:
        name: As requests call it.
        version: Tells states of the folder apart: the beginning of a digest of its configuration.
        model: The forecaster.
        arrays: The same for plain arrays.
        identity: What the folder looked like when it was read.
    """

    name: str
    version: str
    model: LeapTS
    arrays: ArrayForecaster
    identity: Identity

    @property
    def traces(self) -> bool:
        """Whether it takes leaps, which can be told."""
        return isinstance(self.arrays.fitted.model.fusion, GatedFusion)


class ModelRegistry:
    """All models, by name. Requests only ever look names up here; no part of them becomes a path."""

    def __init__(self, folders: Iterable[str | Path]) -> None:
        """Reads the folders.

        Args:
            folders: Paths, or `NAME=PATH`; without a name, a model is called as its folder.

        Raises:
            ConfigError: When two models have one name.
            ModelFileError: When a folder cannot be read.
        """
        self._folders: dict[str, Path] = {}
        for folder in folders:
            name, path = _parted(str(folder))
            if name in self._folders:
                raise ConfigError(f"two models are called {quoted(name)}; name one of them: OTHER={path}")
            self._folders[name] = path
        if not self._folders:
            raise ConfigError("there is no model to serve; name at least one folder that leapts fit wrote")
        self._served = {name: _read(name, path) for name, path in self._folders.items()}
        self._said: dict[str, Identity | None] = {}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    def find(self, name: str | None) -> Served:
        """The model of that name; the only one, when no name is given.

        Raises:
            Problem: When there is none, or the name is needed.
        """
        if name is None and len(self._served) == 1:
            return next(iter(self._served.values()))
        if name is not None and name in self._served:
            return self._served[name]
        names = list(self._served)
        known = ", ".join(quoted(one) for one in names[:8])
        if name is None:
            raise Problem(BAD_REQUEST, f"{len(names)} models are served", f"say which one: model is one of {known}")
        near = nearest(name[:100], names)
        cure = f"did you mean {quoted(near)}?" if near else f"there are {known}"
        raise Problem(NO_SUCH_MODEL, f"there is no model {quoted(name)}", cure)

    async def watch(self, every: float, log: Callable[[str, str, str], None]) -> None:
        """Look at the folders again and again, and serve what replaced them.

        Those that are being served with the old state keep it to their end. A folder that cannot be read leaves the
        old state in place, and is tried again.

        Args:
            every: Seconds between looks.
            log: Told the model, the outcome (`loaded` or `failed`), and what to say about it.
        """
        while True:
            await asyncio.sleep(every)
            for name, path in self._folders.items():
                identity = await asyncio.to_thread(identity_of, path)
                if identity == self._served[name].identity:
                    continue
                try:
                    self._served[name] = await asyncio.to_thread(_read, name, path)
                except LeapTSError as error:
                    if self._said.get(name, ()) != identity:
                        log(name, "failed", f"model {quoted(name)} was not loaded anew: {error}")
                    self._said[name] = identity
                else:
                    log(name, "loaded", f"model {quoted(name)} was replaced: version {self._served[name].version}")


def identity_of(folder: Path) -> Identity | None:
    """What tells one state of a folder from another without reading it; None while there is none."""
    try:
        found = [(folder / file).stat() for file in _FILES]
    except OSError:
        return None
    return tuple(number for one in found for number in (one.st_dev, one.st_ino, one.st_mtime_ns, one.st_size))


def _read(name: str, path: Path) -> Served:
    identity = identity_of(path)
    model = LeapTS.load(path)
    try:
        version = hashlib.sha256((path / _FILES[0]).read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ModelFileError(f"{path} went away while it was read; save the model again") from error
    if identity is None or identity != identity_of(path):
        raise ModelFileError(f"{path} was replaced while it was read; it is read again")
    fitted = model.fitted_
    fitted.model.eval()
    arrays = ArrayForecaster(fitted, fill=model.fill, measure=True)
    return Served(name=name, version=version, model=model, arrays=arrays, identity=identity)


def _parted(folder: str) -> tuple[str, Path]:
    name, equals, path = folder.partition("=")
    if equals and name and "/" not in name and not Path(folder).exists():
        return name, Path(path)
    return Path(folder).resolve().name, Path(folder)
