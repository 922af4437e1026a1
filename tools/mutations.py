"""Small errors that can be written into a Python file: `tools/mutants.py` tries some of them.

Each mutation changes one place of the syntax tree: a comparison, an operator, a number, a
condition, a statement left out, what is returned, `min` for `max`, a keyword argument left out.
Texts are left alone: docstrings, messages, annotations, `__all__`, what is printed on the way.
So is what only saves time or guards against errors of ours: decorators, assertions, and the
options of SPARED.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Mutation", "mutations"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
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
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NUMBERS = {0: (1,), 0.5: (1.0,), 1: (0, 2), 2: (1, 3)}
"""Others are mostly sizes of blocks, limits and tolerances, which tests should not depend on."""
NAMES = {
    a: b
    for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"))
    for a, b in (pair, pair[::-1])
}
SPARED = {
    *("strict", "stacklevel", "check_finite", "copy", "clean", "overwrite_a", "overwrite_b"),
    *("overwrite_c", "optimize", "verbose", "file", "encoding"),
}
"""Keyword arguments that make no difference to what comes out."""
TEXTS = {"__repr__", "__str__", "_repr_html_", "say", "_say"}
"""Functions that only make texts."""
PRINTING = re.compile(r"\b(verbose|TYPE_CHECKING|_said)\b")
TYPES = re.compile(r"\b(TypeAlias|TypeVar|NDArray|Callable|Literal|ParamSpec)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Mutation:
    """One change of one place.

    Attributes
    ----------
    line : int
        Where the place is.
    first, last : int
        Lines of the statement that it is in; of one with a body, only those before the body.
    text : str
        The line of the place, as it is written.
    change : str
        What becomes what.
    outside : bool
        Whether the place is outside functions, or in one that numba compiles: which tests reach it
        is not known by its lines.
    """

    line: int
    first: int
    last: int
    text: str
    change: str
    outside: bool
    _tree: ast.Module = field(repr=False)
    _place: tuple[Any, Any] = field(repr=False)
    _new: ast.AST = field(repr=False)

    def source(self) -> str:
        """The file with the change."""
        holder, key = self._place
        old = _get(holder, key)
        _set(holder, key, self._new)
        try:
            return ast.unparse(ast.fix_missing_locations(self._tree))
        finally:
            _set(holder, key, old)


def mutations(source: str) -> list[Mutation]:
    """All mutations of a file, in the order of its lines."""
    tree, lines = ast.parse(source), source.splitlines()
    found = []
    for holder, key, statement, outside in _places(tree):
        old = _get(holder, key)
        for new in _variants(old):
            change = f"{_short(old)} → {_short(new)}"
            last = statement.end_lineno or statement.lineno
            if body := getattr(statement, "body", None):
                last = max(statement.lineno, body[0].lineno - 1)
            line = old.lineno
            text = lines[line - 1].strip()
            where = (line, statement.lineno, last, text, change, outside)
            found.append(Mutation(*where, tree, (holder, key), new))
    return sorted(found, key=lambda mutation: mutation.line)


def _places(
    node: ast.AST, statement: ast.stmt | None = None, outside: bool = True
) -> Iterator[tuple[Any, Any, ast.stmt, bool]]:
    """What may be changed: its holder, where it is there, its statement, and if at import."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(node, ast.While) and isinstance(value, ast.Constant):
            continue
        holder, keys = (value, range(len(value))) if isinstance(value, list) else (node, [name])
        for key in keys:
            child = _get(holder, key)
            if not isinstance(child, ast.AST) or _spared(child):
                continue
            own = child if isinstance(child, ast.stmt) else statement
            # The default of an argument is made where the function is.
            inside = name == "body" and isinstance(node, Function)
            now = _compiled(node) if inside else outside
            if own is not None and hasattr(child, "lineno"):
                yield holder, key, own, now
            yield from _places(child, own, now)


def _compiled(function: Any) -> bool:
    return any("compiled" in ast.unparse(decorator) for decorator in function.decorator_list)


def _spared(node: ast.AST) -> bool:
    """Whether nothing in there is changed."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, Function):
        return node.name in TEXTS
    if isinstance(node, ast.If | ast.IfExp):
        return bool(PRINTING.search(ast.unparse(node.test)))
    if isinstance(node, ast.Assign):
        return TYPES.search(ast.unparse(node.value)) is not None or _named(node, "__all__")
    if isinstance(node, ast.AnnAssign):
        return TYPES.search(ast.unparse(node.annotation)) is not None and node.value is not None
    if isinstance(node, ast.Call):
        # A warning may be left out as a whole.
        return ast.unparse(node.func) in ("warnings.warn", "print", "TypeVar")
    return False


def _named(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    """What a node is changed to."""
    match node:
        case ast.Compare(left, [op], [right]):
            yield ast.Compare(left, [COMPARISONS[type(op)]()], [right])
        case ast.BinOp(left, op, right) if type(op) in OPERATORS and not _text(left, right):
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value) if value in NUMBERS:
            yield from (ast.Constant(type(value)(other)) for other in NUMBERS[value])
        case ast.Name(name) if name in NAMES:
            yield ast.Name(NAMES[name])
        case ast.Attribute(value, name) if name in NAMES:
            yield ast.Attribute(value, NAMES[name])
        case ast.Call(function, arguments, keywords):
            for k, keyword in enumerate(keywords):
                if keyword.arg is not None and keyword.arg not in SPARED:
                    yield ast.Call(function, arguments, keywords[:k] + keywords[k + 1 :])
    yield from _statements(node)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If(test, body, orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.While(ast.Constant()):
            pass
        case ast.While(test, body, orelse):
            yield ast.While(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))


def _text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in nodes
    )


def _short(node: ast.AST) -> str:
    """The first line of a node, and of a statement no more than its head."""
    return ast.unparse(ast.fix_missing_locations(node)).split("\n")[0]


def _get(holder: Any, key: Any) -> Any:
    return holder[key] if isinstance(holder, list) else getattr(holder, key)


def _set(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, list):
        holder[key] = value
    else:
        setattr(holder, key, value)
