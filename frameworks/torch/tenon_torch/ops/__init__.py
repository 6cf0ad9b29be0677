"""Lowerings of ATen ops, a file for each kind."""

from . import contractions, elementwise, factors, fourier, indexing, linalg, random, reductions, shapes, sorting, windows

__all__ = ["contractions", "elementwise", "factors", "fourier", "indexing", "linalg", "random", "reductions", "shapes", "sorting", "windows"]
