"""The version of the installed project."""

from importlib.metadata import version

VERSION = version("numaproof")
