"""Class decorators that write a constructor from annotated attributes, and complete the class's docstring."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import MISSING, Field, field
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)

# Sections of a class docstring that subclasses inherit. They come before all other sections, in this order.
_INHERITED = ("Parameters", "Attributes", "Other Parameters")
_HEADING = re.compile(r"^(\S.*)\n-{3,}\n", flags=re.M)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def keyword_parameters(cls: _Class) -> _Class:
    """Write the constructor of a class whose annotated attributes are its keyword parameters.

    Attributes are declared as for `dataclasses.dataclass`: ``n_iter: int | None = None``. Declare a parameter that may
    also be passed by position as ``field(default=10, kw_only=False)``, and an attribute that is not a parameter as
    ``field(init=False)``. A subclass inherits the parameters of its decorated bases, and may declare them again with
    another type or default. In its signature, its own parameters come first.

    A docstring describes only what the class declares or changes. Entries that are missing in its sections
    "Parameters", "Other Parameters" and "Attributes" are taken from the decorated bases.

    The class does not become a dataclass. Libraries such as Dask identify a dataclass by the values of its fields, and
    would confuse two fitted estimators with the same parameters.
    """
    return _declared(cls, kw_only=True)


@dataclass_transform(kw_only_default=False, eq_default=False, field_specifiers=(field,))
def positional_parameters(cls: _Class) -> _Class:
    """Write a constructor like `keyword_parameters`, whose parameters may also be passed by position.

    The parameters of the bases come first.
    """
    return _declared(cls, kw_only=False)


def _declared(cls, kw_only):
    own, others = {}, {}
    for name, annotation in inspect.get_annotations(cls).items():
        value = cls.__dict__.get(name, MISSING)
        given = value if isinstance(value, Field) else field(default=value)
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")) or not given.init:
            others[name] = annotation
        else:
            is_keyword = kw_only if given.kw_only is MISSING else given.kw_only
            own[name] = inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY if is_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if given.default is MISSING else given.default,
                annotation=annotation,
            )
        if (name in own and value is not MISSING) or isinstance(value, Field):
            delattr(cls, name)
    # Without these annotations, the class looks like one with a handwritten constructor, also in `help`.
    if own and others:
        cls.__annotations__ = others
    elif own:
        del cls.__annotations__
    cls._own_parameters = own
    cls._names_in_types = _names_in_types(cls, own)
    if "__init__" not in vars(cls) and _all_parameters(cls):
        cls.__init__ = _constructor(cls)
    if cls.__doc__ is not None:
        cls.__doc__ = _completed(cls)
    return cls


def _bases(cls):
    """The decorated classes among a class and its bases, in the order of the MRO."""
    return [base for base in cls.__mro__ if "_own_parameters" in vars(base)]


def _names_in_types(cls, parameters):
    """The objects that the names in annotations refer to, by name.

    They are looked up in the module of the class, since subclasses in other modules inherit the annotations.
    """
    known = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    texts = [each.annotation for each in parameters.values() if isinstance(each.annotation, str)]
    return {name: known[name] for text in texts for name in re.findall(r"\w+", text) if name in known}


def _all_parameters(cls):
    """The positional parameters, those of the most basic class first, and then the keyword parameters.

    Keyword parameters of the class itself come before those of its bases. A parameter that is declared again keeps its
    place.
    """
    bases = _bases(cls)
    last = {name: each for base in reversed(bases) for name, each in base._own_parameters.items()}
    places = {name: -place for place, base in enumerate(bases) for name in base._own_parameters}
    by_position = [each for each in last.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_keyword = [each for each in last.values() if each.kind is each.KEYWORD_ONLY]
    return [*by_position, *sorted(by_keyword, key=lambda each: -places[each.name])]


def _constructor(cls):
    """A function ``__init__`` that stores each argument in the attribute of the same name."""
    parameters = inspect.Signature(_all_parameters(cls)).parameters.values()  # raises if defaults come too early
    by_position = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    by_keyword = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    arguments = ["self", *(each.name for each in by_position), *(["*"] if by_keyword else [])]
    arguments += [each.name for each in by_keyword]
    lines = [f"self.{each.name} = {each.name}" for each in parameters]
    scope = {"__name__": cls.__module__}
    for base in reversed(_bases(cls)):
        scope |= base._names_in_types  # for `typing.get_type_hints`
    exec(f"def __init__({', '.join(arguments)}):\n    " + "\n    ".join(lines), scope)
    init = scope.pop("__init__")
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__defaults__ = tuple(each.default for each in by_position if each.default is not each.empty)
    init.__kwdefaults__ = {each.name: each.default for each in by_keyword if each.default is not each.empty}
    init.__annotations__ = {**{each.name: each.annotation for each in parameters}, "return": None}
    return init


# -- docstrings ----------------------------------------------------------------------------------------------------


def _completed(cls):
    """The docstring of a class, completed by entries of its bases."""
    lead, sections = _sections(cls.__doc__)
    parameters = list(inspect.signature(cls).parameters)
    entries = {title: _entries(sections.pop(title, "")) for title in _INHERITED}
    described = {name for title in _INHERITED for names, _ in entries[title] for name in names}
    for base in _bases(cls)[1:]:
        inherited = _sections(base.__doc__ or "")[1]
        for title in _INHERITED:
            for names, text in _entries(inherited.get(title, "")):
                wanted = [
                    name for name in names if name not in described and (title == "Attributes" or name in parameters)
                ]
                if wanted:
                    described.update(wanted)
                    entries[title].append((wanted, ", ".join(wanted) + text.removeprefix(", ".join(names))))
    for title in ("Parameters", "Other Parameters"):
        entries[title].sort(key=lambda entry: min(map(parameters.index, set(parameters) & set(entry[0])), default=-1))
    bodies = {title: "\n".join(text for _, text in entries[title]) for title in _INHERITED}
    bodies = {title: body for title, body in bodies.items() if body} | sections
    return "\n\n".join([lead, *(f"{title}\n{'-' * len(title)}\n{body}" for title, body in bodies.items())]) + "\n"


def _sections(docstring):
    """The text before the first heading of a docstring, and a dict of the texts of its sections by title."""
    lead, *rest = _HEADING.split(inspect.cleandoc(docstring) + "\n")
    return lead.strip(), {title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2], strict=True)}


def _entries(section):
    """A list of pairs (names, text), one for each entry of a section."""
    texts = [text.rstrip() for text in re.split(r"\n(?=\S)", section) if text.strip()]
    return [([name.strip() for name in re.split(r" ?:|\n", text)[0].split(",")], text) for text in texts]
