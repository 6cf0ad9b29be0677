"""Lowerings of ATen ops, a file for each kind."""

from . import contractions, elementwise, fourier, indexing, linalg, random, reductions, shapes, sorting, windows

__all__ = ["contractions", "elementwise", "fourier", "indexing", "linalg", "random", "reductions", "shapes", "sorting", "windows"]
