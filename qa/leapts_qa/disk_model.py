"""A disk that promises only what POSIX does, and what a power cut may leave of it."""

import random
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Call:
    """One recorded call that changed the disk, or made a change last."""

    kind: str
    paths: tuple[str, ...] = ()
    content: bytes = b""
    size: int = 0
    flags: str = ""


@dataclass(frozen=True)
class Change:
    """What a call does to the disk, by the numbers of files and folders.

    Attributes:
        links: What names in folders stand for afterwards, all in one step; None: nothing.
        number: The file whose bytes change, if any do.
        offset: Where.
        content: To what.
        size: The length the file is cut to; None: it is written to.
        syncs: The number a sync is of, if the call is one.
    """

    links: dict[tuple[int, str], int | None] = field(default_factory=dict)
    number: int | None = None
    offset: int = 0
    content: bytes = b""
    size: int | None = None
    syncs: int | None = None

    @property
    def owners(self) -> set[int]:
        """The folders whose names, or the file whose bytes change."""
        return {folder for folder, _ in self.links} if self.number is None else {self.number}


class Tree:
    """Folders and files by number; number 0 is the root."""

    def __init__(self, root: str) -> None:
        self.root = PurePosixPath(root)
        self.folders: dict[int, dict[str, int]] = {0: {}}
        self.files: dict[int, bytearray] = {}
        self._next = 1

    def new(self, *, is_folder: bool) -> int:
        """A number for a file or folder that no name stands for yet."""
        number, self._next = self._next, self._next + 1
        if is_folder:
            self.folders[number] = {}
        else:
            self.files[number] = bytearray()
        return number

    def find(self, path: str) -> int | None:
        """The number a path stands for."""
        number: int | None = 0
        for name in PurePosixPath(path).relative_to(self.root).parts:
            number = self.folders.get(number, {}).get(name) if number is not None else None
        return number

    def entry(self, path: str) -> tuple[int, str]:
        """The folder a path is in, and its name there."""
        folder = self.find(str(PurePosixPath(path).parent))
        assert folder is not None, path
        return folder, PurePosixPath(path).name

    def apply(self, change: Change, share: float = 1.0) -> None:
        """Do a change; of bytes, the first share of them."""
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
        """Every path, with the bytes of a file, or none of a folder."""
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
        """What a call does to this disk as it is now."""
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
    """What a power cut after these calls may leave: all that was synced, and a random part of the rest."""
    truth = _tree(root, before)
    changes = []
    for call in calls:
        changes.append(truth.change(call))
        truth.apply(changes[-1])
    left = _tree(root, before)
    for number in sorted({*truth.files, *truth.folders} - {*left.files, *left.folders}):
        left.new(is_folder=number in truth.folders)
    lost = chance.choice([0.0, 0.2, 0.5, 0.8, 1.0])  # of what was not synced
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
