"""Live pages: the rendered book with a kernel of the reader's own, so that every cell can be changed and run where it stands.

``python -m mlax_tutorial live`` (`make live` in a checkout) serves the built book on this machine alone and starts a kernel for each
chapter at its first run. What serves, starts and talks to kernels is `jupyter_server`; here it gets nothing but kernels and
the book: no files, no terminals, no extensions, no configuration of the reader's.

- `book`: which files the built book has, and which cell of the notebook each cell of a page is.
- `kernels`: one kernel a chapter, a few at a time, none left behind.
- `heard`: what a kernel says of its last run, for a page that comes late.
- `server`: one address, closed to everybody without the token.
- `static`: what a page loads to be live, built from ``tools/live`` of the repository.
"""
