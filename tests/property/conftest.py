"""Hypothesis tries constants of the modules that are loaded: load all of ours, so that what it
tries does not depend on which tests ran before.
"""

import importlib
import pkgutil

import equipoise

for module in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
    if not module.name.endswith("__main__") and ".integrations" not in module.name:
        importlib.import_module(module.name)
