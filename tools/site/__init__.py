"""The rendered book: what Sphinx is taught for it (`extension`). What a browser does with its pages is in `tools/visits`."""
