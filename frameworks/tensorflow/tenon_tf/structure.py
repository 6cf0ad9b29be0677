"""Nested lists, tuples and dictionaries: flat lists of leaves, and a form that compares and can be saved."""

from collections.abc import Mapping
from typing import Any

LEAF = "*"


def flatten(value: Any, leaves: list) -> Any:
    """Appends the leaves of `value`, dictionaries in the order of their keys; returns the structure, which can be hashed."""
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple" if not hasattr(value, "_fields") else type(value)
        return kind, tuple([flatten(each, leaves) for each in value])
    if isinstance(value, Mapping):
        keys = tuple(sorted(value))
        return "dict", keys, tuple([flatten(value[key], leaves) for key in keys])
    leaves.append(value)
    return LEAF


def pack(structure: Any, leaves) -> Any:
    """The structure with leaves that the iterator gives."""
    if structure == LEAF:
        return next(leaves)
    if structure[0] == "dict":
        return {key: pack(each, leaves) for key, each in zip(structure[1], structure[2])}
    items = [pack(each, leaves) for each in structure[1]]
    if structure[0] == "list":
        return items
    return tuple(items) if structure[0] == "tuple" else structure[0](*items)


def portable(structure: Any) -> Any:
    """A form for JSON, in which named tuples are tuples."""
    if structure == LEAF:
        return LEAF
    if structure[0] == "dict":
        return ["dict", list(structure[1]), [portable(each) for each in structure[2]]]
    return [structure[0] if isinstance(structure[0], str) else "tuple", [portable(each) for each in structure[1]]]


def from_portable(form: Any) -> Any:
    if form == LEAF:
        return LEAF
    return (form[0], *[tuple(each) for each in form[1:-1]], tuple(from_portable(each) for each in form[-1]))
