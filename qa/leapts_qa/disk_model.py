"""A model of a disk with the guarantees of POSIX only, and its possible contents after a power loss."""

import random
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Call:
    """A recorded call that changed the disk or synced a change."""

    kind: str
    paths: tuple[str, ...] = ()
    content: bytes = b""
    size: int = 0
    flags: str = ""


@dataclass(frozen=True)
class Change:
    """The effect of a call on the disk, by the numbers of files and folders.

    Attributes:
        links: New targets of names in folders, changed atomically; None for no entry.
        number: The file whose bytes change, if any.
        offset: The position of the change.
        content: The new bytes.
        size: The length that the file is truncated to; None for a write.
        syncs: The number that is synced, if the call is a sync.
    """

    links: dict[tuple[int, str], int | None] = field(default_factory=dict)
    number: int | None = None
    offset: int = 0
    content: bytes = b""
    size: int | None = None
    syncs: int | None = None

    @property
    def owners(self) -> set[int]:
        """Return the folders whose entries, or the file whose bytes change."""
        return {folder for folder, _ in self.links} if self.number is None else {self.number}


class Tree:
    """Folders and files by number; number 0 is the root."""

    def __init__(self, root: str) -> None:
        self.root = PurePosixPath(root)
        self.folders: dict[int, dict[str, int]] = {0: {}}
        self.files: dict[int, bytearray] = {}
        self._next = 1

    def new(self, *, is_folder: bool) -> int:
        """Return a number for a file or folder without a name."""
        number, self._next = self._next, self._next + 1
        if is_folder:
            self.folders[number] = {}
        else:
            self.files[number] = bytearray()
        return number

    def find(self, path: str) -> int | None:
        """Return the number of a path."""
        number: int | None = 0
        for name in PurePosixPath(path).relative_to(self.root).parts:
            number = self.folders.get(number, {}).get(name) if number is not None else None
        return number

    def entry(self, path: str) -> tuple[int, str]:
        """Return the folder of a path and its name there."""
        folder = self.find(str(PurePosixPath(path).parent))
        assert folder is not None, path
        return folder, PurePosixPath(path).name

    def apply(self, change: Change, share: float = 1.0) -> None:
        """Apply a change; of written bytes, only the first share."""
        for (folder, name), number in change.links.items():
            if number is None:
                self.folders[folder].pop(name, None)
            else:
                self.folders[folder][name] = number
        if change.number is None:
            return
        content = self.files[change.number]
        if change.size is not None:
            del content[change.size :]
            return
        part = change.content[: round(share * len(change.content))]
        content.extend(bytes(max(0, change.offset - len(content))))
        content[change.offset : change.offset + len(part)] = part

    def contents(self) -> dict[str, bytes | None]:
        """Return every path with the bytes of a file, or None for a folder."""
        found: dict[str, bytes | None] = {}
        waiting = [(self.root, 0)]
        while waiting:
            path, folder = waiting.pop()
            for name, number in self.folders[folder].items():
                if number in self.folders:
                    found[str(path / name)] = None
                    waiting.append((path / name, number))
                else:
                    found[str(path / name)] = bytes(self.files[number])
        return found

    def change(self, call: Call) -> Change:
        """Return the effect of a call on this disk."""
        match call.kind:
            case "write":
                number = self.find(call.paths[0])
                assert number is not None
                return Change(number=number, offset=len(self.files[number]), content=call.content)
            case "ftruncate":
                return Change(number=self.find(call.paths[0]), size=call.size)
            case "fsync":
                return Change(syncs=self.find(call.paths[0]))
            case "create" | "mkdir":
                there = self.find(call.paths[0])
                if there is not None:
                    return Change(number=there, size=0) if "O_TRUNC" in call.flags else Change()
                return Change(links={self.entry(call.paths[0]): self.new(is_folder=call.kind == "mkdir")})
            case "unlink":
                return Change(links={self.entry(call.paths[0]): None})
            case "rename" | "exchange":
                one, other = call.paths
                back = self.find(other) if call.kind == "exchange" else None
                return Change(links={self.entry(one): back, self.entry(other): self.find(one)})
            case _:
                raise ValueError(call.kind)


def after_cut(
    root: str, before: dict[str, bytes | None], calls: list[Call], chance: random.Random
) -> dict[str, bytes | None]:
    """Return a possible content after a power loss: all synced changes and a random part of the others."""
    truth = _tree(root, before)
    changes = []
    for call in calls:
        changes.append(truth.change(call))
        truth.apply(changes[-1])
    left = _tree(root, before)
    for number in sorted({*truth.files, *truth.folders} - {*left.files, *left.folders}):
        left.new(is_folder=number in truth.folders)
    lost = chance.choice([0.0, 0.2, 0.5, 0.8, 1.0])  # of the changes that were not synced
    synced: set[int] = set()
    kept: list[tuple[Change, float]] = []
    for change in reversed(changes):
        if change.syncs is not None:
            synced.add(change.syncs)
        elif change.owners <= synced:
            kept.append((change, 1.0))
        elif chance.random() >= lost:
            kept.append((change, chance.choice([1.0, chance.random()])))
    for change, share in reversed(kept):
        left.apply(change, share)
    return left.contents()


def _tree(root: str, contents: dict[str, bytes | None]) -> Tree:
    tree = Tree(root)
    for path, content in contents.items():
        number = tree.new(is_folder=content is None)
        tree.apply(Change(links={tree.entry(path): number}))
        if content is not None:
            tree.apply(Change(number=number, content=content))
    return tree
