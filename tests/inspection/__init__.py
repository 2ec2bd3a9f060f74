"""Tools that look into programs; what they say does not depend on how a program was compiled."""

QUICK_TO_COMPILE = True
