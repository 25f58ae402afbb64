"""Checks that a formula evaluates only columns of metadata and allowed functions.

The library formulaic evaluates the factors of a formula as Python code. A formula may come from a file or a web form,
so every factor is parsed and checked here before formulaic evaluates it.
"""

import ast
import re

FUNCTIONS = frozenset(
    "log log2 log10 exp exp2 exp10 bs cc cr cs poly center scale standardize hashed C I "
    "Treatment Poly Sum Helmert Diff".split()
)
# Allowed members of modules.
MEMBERS = {
    "np": frozenset(
        "abs absolute arcsinh arctan cbrt ceil clip cos exp exp2 expm1 floor log log10 log1p log2 maximum minimum mod "
        "rint round sign sin sqrt square tan tanh where".split()
    ),
    "contr": frozenset("SAS diff helmert poly sum treatment".split()),
}
_PLAIN = (
    ast.Expression, ast.Constant, ast.Load, ast.List, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_HIGHEST_POWER = 100
_QUOTED = "__quoted_column__"  # Replaces a name in backticks.


class RefusedExpression(Exception):
    """A factor of a formula may not be evaluated; the message says why."""


def columns_in(expression):
    """Names of the columns of metadata that a factor uses; raises `RefusedExpression` if it is not allowed."""
    quoted = set(re.findall("`([^`]+)`", expression))
    try:
        tree = ast.parse(re.sub("`[^`]+`", f" {_QUOTED} ", expression).strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise RefusedExpression(f"{expression!r} cannot be read") from None
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    # With both, formulaic might divide the expression into texts and names in another way than this function.
    if any(_QUOTED in text for text in texts) or any(set(name) & set("\"'\\") for name in quoted):
        raise RefusedExpression(f"{expression!r} mixes backticks and quotes")
    check = _Check()
    check.visit(tree)
    return (check.columns - {_QUOTED}) | quoted


class _Check(ast.NodeVisitor):
    """Collects names, and raises at the first node that is not allowed."""

    def __init__(self):
        self.columns = set()

    def generic_visit(self, node):
        if not isinstance(node, _PLAIN):
            raise RefusedExpression(f"{ast.unparse(node)!r} is not evaluated")
        super().generic_visit(node)

    def visit_Name(self, node):
        self.columns.add(node.id)

    def visit_Attribute(self, node):
        module = node.value.id if isinstance(node.value, ast.Name) else None
        if node.attr not in MEMBERS.get(module, ()):
            raise RefusedExpression(
                f"{ast.unparse(node)!r} is not evaluated; for the mean or the spread of the fitted documents use "
                "center(x) or scale(x)"
            )

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            self.visit_Attribute(node.func)
        elif not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = ast.unparse(node.func)
            if name == "s":
                raise RefusedExpression("the smooth s(x) of R packages is bs(x, df=6) here")
            raise RefusedExpression(f"the function {name!r} is not defined for formulas")
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg.startswith("_"):
                raise RefusedExpression(f"{ast.unparse(keyword)!r} is no argument for formulas")
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(argument)

    def visit_BinOp(self, node):
        sides = node.left, node.right
        if any(isinstance(side, (ast.List, ast.Tuple)) or isinstance(_value(side), str) for side in sides):
            raise RefusedExpression(f"{ast.unparse(node)!r} is no computation with numbers")
        if isinstance(node.op, ast.Pow):
            power = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
            value = _value(power)
            # Powers of plain integers could take hours to compute.
            of_column = any(isinstance(each, ast.Name) for each in ast.walk(node.left))
            if not (of_column and isinstance(value, (int, float)) and value <= _HIGHEST_POWER):
                raise RefusedExpression(f"{ast.unparse(node)!r} is no power of a column by a small number")
        super().generic_visit(node)


def _value(node):
    return node.value if isinstance(node, ast.Constant) else None
