"""The basis of HTML pages: packaged files, hashes for security policies, and escaping templates."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

import jinja2
from markupsafe import Markup

from numaproof.inputs.plurals import plural
from numaproof.reports.untrusted_text import visible

_OWN = "numaproof.reports"


def package_file(name: str, package: str = _OWN) -> Markup:
    """Returns the text of a file in a package, marked as safe so that it is not escaped."""
    return Markup(resources.files(package).joinpath(name).read_text("utf-8"))  # noqa: S704


def page_script() -> Markup:
    """Returns the script of a run's page, which a comparison's page shares."""
    return package_file("copying.js") + package_file("report.js")


def _source_hash(text: str) -> str:
    """Returns the text's hash as a source expression for a content security policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"


def environment(package: str = _OWN) -> jinja2.Environment:
    """Returns a template environment that escapes values and makes hidden characters visible.

    Its templates are those of a package, and the shared ones of this package.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(one, "") for one in dict.fromkeys((package, _OWN))]
        ),
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
