"""The address of the whole site, `index.html`: leads on to the first page, and says to those who only look at it what the book is.

Jupyter Book writes a bare redirect there, which has no title and no picture for the preview of a link.
"""

import html
from pathlib import Path

from tools import project
from tools.site.pages import attribute

PAGE = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta http-equiv="refresh" content="0; url={first}.html" />
    <title>{title}</title>
    <meta name="description" content="{about}" />
    <meta property="og:title" content="{title}" />
    <meta property="og:description" content="{about}" />
    <meta property="og:type" content="website" />
    <meta property="og:url" content="{site}/" />
    <meta property="og:image" content="{site}/_static/social.png" />
    <link rel="canonical" href="{site}/{first}.html" />
    <link rel="icon" type="image/svg+xml" href="_static/favicon.svg" />
    <link rel="apple-touch-icon" href="_static/touch-icon.png" />
    <style>
      :root {{ color-scheme: light dark; }}
      body {{ margin: 3rem auto; max-width: 34rem; padding: 0 1.5rem; font: 1.125rem/1.55 Charter, Georgia, serif; }}
      body {{ background: light-dark(#fdfcf9, #15181e); color: light-dark(#22252b, #dfe3ea); }}
      a {{ color: light-dark(#2b47ad, #a3b8ff); }}
    </style>
  </head>
  <body>
    <main>
      <h1>{title}</h1>
      <p>{about} <a href="{first}.html">Begin to read</a>.</p>
    </main>
  </body>
</html>
"""
ABOUT = "An interactive book: learn to think in JAX, then write a library of layers and optimizers, a piece at a time, and train networks with it."


def page(first: str, title: str, site: str) -> str:
    return PAGE.format(first=first, title=html.escape(title), about=attribute(ABOUT), site=site)


def write(app, exception):
    if exception is None and app.builder.name == "html" and app.config.root_doc != "index":
        site = project.page_url("", Path(app.srcdir)).removesuffix("/.html")
        text = page(app.config.root_doc, app.config.html_title, site)
        (Path(app.outdir) / "index.html").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write)
