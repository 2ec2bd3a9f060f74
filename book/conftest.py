"""The notebooks of this folder are validated by nbval; tools/notebooks/validation.py says how."""

from tools.notebooks.validation import *  # noqa: F403
