"""The rendered book: what Sphinx is taught for it (`extension`), and how its pages are visited, inspected and printed.

`python -m tools.site screenshots DIR` takes pictures of the built site.
"""
