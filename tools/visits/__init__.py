"""What a browser does with the built pages: it visits them, looks for faults, takes pictures and prints.

`browser` serves a site and starts Chromium, `inspection` says what it meets on a page, with `accessibility` and `sight`, `pdf` binds the
pages to a book. The tests (`tests/site`) start the browser by `tests/browsers.py`.

`python -m tools.visits screenshots DIR` takes pictures of the built site.
"""
