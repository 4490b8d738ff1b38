"""The faults: what can be changed in a source, one change at a time.

A change swaps a comparison, an operator or `and` and `or`, moves a number, turns a truth value or a condition around,
returns nothing, or leaves a statement out. Words are left alone, and so are decorators, types and the insides of
strings: a change of those says more about how a test is written than about what it holds.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_SWAPS: dict[type[ast.AST], Callable[[], Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_TURNED_BY_A_SWAP = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_TEXT = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)


@dataclass(frozen=True)
class Mutant:
    """One change to a source.

    Attributes:
        key: The same for the same change to the same function, wherever that stands.
        number: Which of the source's changes it is.
        place: The function or class it is in.
        what: The change, in words.
        line: Where it is.
        statement: The lines of the statement it is in.
        in_function: Whether it is run only when a function is called, rather than when the module is read.
    """

    key: str
    number: int
    place: str
    what: str
    line: int
    statement: range
    in_function: bool


@dataclass(frozen=True)
class _Site:
    """Where in a tree a change can be made, and what stands there before and after."""

    parent: ast.AST
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST
    names: tuple[str, ...]
    unit: ast.AST
    statement: ast.stmt

    def change(self) -> None:
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new


def mutants_of(source: str) -> list[Mutant]:
    """All changes to a source, in its order."""
    found = []
    seen: Counter[str] = Counter()
    for number, site in enumerate(_sites(ast.parse(source))):
        place = ".".join(site.names) or "the module"
        digest = hashlib.sha256(ast.dump(site.unit).encode()).hexdigest()[:12]
        unit = f"{place} {digest}"
        seen[unit] += 1
        found.append(
            Mutant(
                key=f"{unit} {seen[unit]}",
                number=number,
                place=place,
                what=_in_words(site),
                line=getattr(site.old, "lineno", site.statement.lineno),
                statement=_lines(site.statement),
                in_function=isinstance(site.unit, ast.FunctionDef | ast.AsyncFunctionDef),
            )
        )
    return found


def changed(source: str, number: int) -> ast.Module:
    """A source with one of its changes made."""
    tree = ast.parse(source)
    next(site for position, site in enumerate(_sites(tree)) if position == number).change()
    return ast.fix_missing_locations(tree)


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for statement in tree.body:
        yield from _in_statement(tree, "body", tree.body.index(statement), statement, (), None)


def _in_statement(
    parent: ast.AST, field: str, index: int, statement: ast.stmt, names: tuple[str, ...], unit: ast.AST | None
) -> Iterator[_Site]:
    """The changes to a statement and to all in it; a function is a unit, and so is a statement outside of any."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            inner, own = (*names, name), unit or statement
            for defaults in ("defaults", "kw_defaults"):
                for position, default in enumerate(getattr(statement.args, defaults)):
                    if default is not None:
                        # A default is worked out where the function is made, so it belongs to what is around that.
                        around = unit or ast.Expr(default)
                        place = (statement.args, defaults, position)
                        yield from _in_expression(*place, default, inner, around, statement)
            yield from _in_bodies(statement, inner, own)
        case ast.ClassDef(name=name):
            yield from _in_bodies(statement, (*names, name), unit)
        case ast.AnnAssign(value=value, annotation=annotation):
            for call in [node for node in ast.walk(annotation) if isinstance(node, ast.Call)]:
                for position, keyword in enumerate(call.keywords):
                    yield from _in_expression(
                        call.keywords[position], "value", None, keyword.value, names, unit or statement, statement
                    )
            if value is not None:
                yield from _in_expression(statement, "value", None, value, names, unit or statement, statement)
        case _:
            own = unit or statement
            for new in _instead_of_statement(statement):
                yield _Site(parent, field, index, statement, new, names, own, statement)
            yield from _in_expressions(statement, names, own, statement)
            yield from _in_bodies(statement, names, unit)


def _in_bodies(node: ast.AST, names: tuple[str, ...], unit: ast.AST | None) -> Iterator[_Site]:
    """The statements directly under a node, and under its handlers and cases."""
    for field in ("body", "orelse", "finalbody"):
        inside = getattr(node, field, None)
        for index, statement in enumerate(inside if isinstance(inside, list) else []):
            yield from _in_statement(node, field, index, statement, names, unit)
    for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield from _in_bodies(part, names, unit)


def _in_expressions(node: ast.AST, names: tuple[str, ...], unit: ast.AST, statement: ast.stmt) -> Iterator[_Site]:
    """The changes to the expressions under a node, but not to statements, types, patterns and strings."""
    for field, value in ast.iter_fields(node):
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.stmt | ast.expr_context | ast.ExceptHandler | ast.JoinedStr):
                continue
            if isinstance(child, ast.match_case):
                if child.guard is not None:
                    yield from _in_expression(child, "guard", None, child.guard, names, unit, statement)
            elif isinstance(child, ast.AST):
                yield from _in_expression(node, field, index, child, names, unit, statement)


def _in_expression(
    parent: ast.AST,
    field: str,
    index: int | None,
    node: ast.AST,
    names: tuple[str, ...],
    unit: ast.AST,
    statement: ast.stmt,
) -> Iterator[_Site]:
    if isinstance(node, ast.JoinedStr):
        return
    for new in _instead_of_expression(node):
        yield _Site(parent, field, index, node, new, names, unit, statement)
    yield from _in_expressions(node, names, unit, statement)


def _instead_of_expression(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for position, operator in enumerate(node.ops):
                operators = [*node.ops[:position], _swapped(operator), *node.ops[position + 1 :]]
                yield ast.Compare(node.left, operators, node.comparators)
        case ast.BinOp(op=operator) if type(operator) in _SWAPS and not _joins_text(node):
            yield ast.BinOp(node.left, _swapped(operator), node.right)
        case ast.BoolOp(op=operator):
            yield ast.BoolOp(_swapped(operator), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.IfExp() if not _is_turned_elsewhere(node.test):
            yield ast.IfExp(_negated(node.test), node.body, node.orelse)
        case ast.comprehension():
            for position, condition in enumerate(node.ifs):
                if not _is_turned_elsewhere(condition):
                    conditions = [*node.ifs[:position], _negated(condition), *node.ifs[position + 1 :]]
                    yield ast.comprehension(node.target, node.iter, conditions, node.is_async)


def _instead_of_statement(node: ast.stmt) -> Iterator[ast.stmt]:
    match node:
        case ast.If() if not _is_turned_elsewhere(node.test):
            yield ast.If(_negated(node.test), node.body, node.orelse)
        case ast.While() if not _is_turned_elsewhere(node.test):
            yield ast.While(_negated(node.test), node.body, node.orelse)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.AugAssign() | ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=targets) if all(isinstance(one, ast.Attribute | ast.Subscript) for one in targets):
            yield ast.Pass()


def _swapped(operator: ast.AST) -> Any:
    return _SWAPS[type(operator)]()


def _negated(test: ast.expr) -> ast.UnaryOp:
    return ast.UnaryOp(ast.Not(), test)


def _is_turned_elsewhere(test: ast.expr) -> bool:
    """Whether a change inside of the condition already turns it around, or turning it says nothing."""
    match test:
        case ast.Compare(ops=[operator]):
            return isinstance(operator, _TURNED_BY_A_SWAP)
        case ast.UnaryOp(op=ast.Not()) | ast.Constant():
            return True
        case ast.Name(id="TYPE_CHECKING"):
            return True
        case _:
            return False


def _joins_text(node: ast.BinOp) -> bool:
    """Whether it joins text or lists, or types: any other operator fails there at once, and tests nothing."""
    sides = (node.left, node.right)
    if isinstance(node.op, ast.BitOr) and any(_is_none(side) for side in sides):
        return True
    return any(isinstance(side, _TEXT) or _is_text(side) for side in sides)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _lines(statement: ast.stmt) -> range:
    """The lines of a statement; of one with statements in it, its head."""
    body: Sequence[ast.stmt] = getattr(statement, "body", ())
    stop = body[0].lineno if body else (statement.end_lineno or statement.lineno) + 1
    return range(statement.lineno, max(stop, statement.lineno + 1))


def _in_words(site: _Site) -> str:
    old = _first_line(site.old)
    if isinstance(site.new, ast.Pass):
        return f"`{old}` left out"
    return f"`{old}` becomes `{_first_line(site.new)}`"


def _first_line(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0].replace("`", "'")
    return text if len(text) <= 90 else text[:87] + "..."
