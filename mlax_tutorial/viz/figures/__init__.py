"""The figures that a reader steps through: a folder each, named as its function.

- ``NAME/__init__.py`` holds the function, which looks at what it is given, and the class that shows what it found.
- ``NAME/page.py`` makes of this the markup for a notebook, ``write``, and the text for a terminal, ``listing``.
- ``NAME/style.css`` and ``NAME/script.js`` are the style and the script, where there is one.

What they share is here: `markup` and `controls`, their styles and scripts, and `notation`, the names in listings of programs.
"""
