"""Putting a changed source in the place of a module, before it is read or after."""

import ast
import gc
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

from leapts_bench.mutation.mutants import Mutant


def functions_of(file: Path) -> list[FunctionType]:
    """All functions made from a file, however they are wrapped."""
    name = str(file)
    return [thing for thing in gc.get_objects() if type(thing) is FunctionType and thing.__code__.co_filename == name]


def new_code(
    mutant: Mutant, tree: ast.Module, functions: Sequence[FunctionType]
) -> list[tuple[FunctionType, CodeType]]:
    """The functions that a change is in, with their new code; none where it cannot be given to them.

    Functions inside of others are made when those are called, of code that the outer ones hold.
    """
    codes = list(_codes(compile(tree, "changed", "exec", dont_inherit=True)))
    place = mutant.place.split(".")
    found = []
    for function in functions:
        old = function.__code__
        same = [code for code in codes if code.co_qualname == old.co_qualname]
        if not same or old.co_qualname.split(".") != place[: old.co_qualname.count(".") + 1]:
            continue
        new = min(same, key=lambda code: abs(code.co_firstlineno - old.co_firstlineno))
        if new.co_freevars != old.co_freevars:
            return []
        found.append((function, new.replace(co_filename=old.co_filename)))
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def read_instead(file: Path, content: bytes) -> None:
    """From now on, reading that module reads this."""
    plain = SourceFileLoader.get_data
    sys.dont_write_bytecode = True

    def get_data(loader: SourceFileLoader, path: str) -> bytes:
        asked = Path(path)
        if asked == file:
            return content
        if asked.parent == file.parent / "__pycache__" and asked.name.startswith(f"{file.stem}."):
            raise FileNotFoundError(path)
        return plain(loader, path)

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign, assignment]
