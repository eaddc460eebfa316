"""Stockade: shell commands that nobody has read first, behind operating-system walls."""

__version__ = "0.1.0"
