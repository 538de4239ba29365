"""What pages are made from: our own files, their hashes, and templates that escape everything."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

import jinja2
from markupsafe import Markup

from numaproof.inputs.plurals import plural
from numaproof.reports.untrusted_text import visible


def package_file(name: str, package: str = "numaproof.reports") -> Markup:
    """The text of a file installed beside the modules of a package, which is not escaped."""
    return Markup(resources.files(package).joinpath(name).read_text("utf-8"))  # noqa: S704


def _source_hash(text: str) -> str:
    """The hash of the text as a source expression for a content security policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"


def environment(package: str = "numaproof.reports") -> jinja2.Environment:
    """Templates of a package: every value is escaped, hidden characters are made visible."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(package, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_make_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plural": plural, "source_hash": _source_hash}
    return made


def _make_visible(value: object) -> object:
    return visible(value) if type(value) is str else value
