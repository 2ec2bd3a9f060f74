"""What the project is called in public: the repository's URL and revision, read from pyproject.toml.

Everything that needs a public address asks here, so `pyproject.toml` is the one place to change it.
"""

import functools
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TITLE = "Learn JAX by building a neural-network library"


@functools.cache
def _pyproject(root: pathlib.Path) -> dict:
    with open(root / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


def repository(root: pathlib.Path = ROOT) -> str:
    """The public repository, without a slash at the end: `https://github.com/OWNER/NAME`."""
    return _pyproject(root)["project"]["urls"]["Repository"].rstrip("/").removesuffix(".git")


def version(root: pathlib.Path = ROOT) -> str:
    """The version of the book and of its package."""
    return _pyproject(root)["project"]["version"]


def revision(root: pathlib.Path = ROOT) -> str:
    """The branch, tag or commit whose package fits the committed notebooks."""
    return _pyproject(root)["tool"]["mlax-tutorial"]["revision"]


def requirement(root: pathlib.Path = ROOT) -> str:
    """What `pip install` needs to bring the package and all that a chapter imports."""
    name = _pyproject(root)["project"]["name"]
    return f"{name}[notebooks] @ git+{repository(root)}@{revision(root)}"


def colab_url(notebook: str, root: pathlib.Path = ROOT) -> str:
    """The address that opens a notebook, named by its path in the repository, in Colab.

    >>> colab_url("book/arrays.ipynb")  # doctest: +ELLIPSIS
    'https://colab.research.google.com/github/.../book/arrays.ipynb'
    """
    slug = repository(root).removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{slug}/blob/{revision(root)}/{notebook}"


def page_url(page: str, root: pathlib.Path = ROOT) -> str:
    """The address of a page of the published book, named as Sphinx names it.

    >>> page_url("book/glossary")  # doctest: +ELLIPSIS
    'https://.../book/glossary.html'
    """
    return f"{_pyproject(root)['project']['urls']['Documentation'].rstrip('/')}/{page}.html"
