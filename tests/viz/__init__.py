QUICK_TO_COMPILE = True  # what is drawn does not depend on how it was compiled
