"""The reference pages: signatures as a reader writes them, and references by a name alone.

The pages themselves, `book/reference/*.md`, say which object stands where; autodoc and napoleon fill in the docstrings,
whose examples run as doctests.
"""

import inspect
import re

from sphinx.domains.python import PythonDomain

from mlax_tutorial.nn.hyperparameters import show

EXTENSIONS = ("sphinx.ext.autodoc", "sphinx.ext.napoleon")
OPTIONS = {
    "add_module_names": False,  # a page says what it imports
    "autodoc_member_order": "bysource",
    "autodoc_typehints": "none",  # what a parameter is stands beside its name
    "default_role": "code",
    "napoleon_use_rtype": False,
    "napoleon_use_ivar": True,
    "python_maximum_signature_line_length": 60,
    # The one thing that is neither here nor in a built-in module: no address is looked up, so that the build works offline.
    # (The last one: Sphinx takes the first of two attributes that share a line for a type.)
    "nitpick_ignore": [("py:class", "jax.Array"), ("py:class", "numpy.ndarray")],
    "toc_object_entries_show_parents": "hide",
}


def signature(obj) -> str:
    """Parameters with their defaults, without types, and without the addresses that defaults show."""
    parameters = []
    for parameter in inspect.signature(obj).parameters.values():
        if parameter.default is not parameter.empty:
            parameter = parameter.replace(default=_Shown(parameter.default))
        parameters.append(parameter.replace(annotation=parameter.empty))
    return str(inspect.Signature(parameters))


class _Shown:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return re.sub(r" at 0x[0-9a-f]+", "", show(self.value))


def process_signature(app, what, name, obj, options, arguments, returned):
    if what in ("class", "exception") and issubclass(obj, (BaseException, str)):
        return "", None  # made by the library, not by readers
    if what == "method" and arguments is not None:
        return re.sub(r"^\(self(, )?", "(", signature(obj)), None
    if what in ("class", "function") and arguments is not None:
        return signature(obj), None
    return arguments, None


def escape_stars(app, what, name, obj, options, lines):
    """Let ``x, **inputs: …`` stand in a list of parameters; napoleon does it for ``**inputs: …`` alone."""

    def escape(found):
        return found[1] + found[2].replace("*", r"\*")

    lines[:] = [re.sub(r"^(\s+)((?:\*{0,2}\w+, )+\*{0,2}\w+)(?=:)", escape, line) for line in lines]


def resolve(app, env, node, contnode):
    """A reference such as :class:`Bias` finds the one documented object of that name, whichever module holds it."""
    if node.get("refdomain") != "py":
        return None
    domain: PythonDomain = env.get_domain("py")
    found = domain.find_obj(env, None, None, node["reftarget"], node["reftype"], searchmode=1)
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], found[0][0], node, contnode)


def mend_signatures(body: str) -> str:
    """Sphinx writes a signature of many lines as a definition list without terms, which no screen reader understands."""

    def mend(signature):
        text = signature[0].replace("<dl>", '<span class="sig-lines">').replace("</dl>", "</span>")
        return text.replace("<dd>", "<span>").replace("</dd>", "</span>")

    return re.sub(r'<dt class="sig .*?</dt>', mend, body, flags=re.DOTALL)


def mend_page(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = mend_signatures(context["body"])


def setup(app):
    for extension in EXTENSIONS:
        app.setup_extension(extension)
    for name, value in OPTIONS.items():
        app.config[name] = value
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-process-docstring", escape_stars, priority=400)  # napoleon's is 500
    app.connect("missing-reference", resolve)
    app.connect("html-page-context", mend_page)
