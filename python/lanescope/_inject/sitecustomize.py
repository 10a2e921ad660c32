"""Start-up file of a recorded Python process; see README.md next to it.

It must never stop the user's script: any error here costs one line on stderr and the recording. Only the standard
library is used until the script has imported torch.
"""

import os
import sys


def _clean_environment(here):
    """Take this directory out of the search path of this process and of its children."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    before = os.environ.get("LANESCOPE_RECORD_PYTHONPATH", "")
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        os.environ.pop("PYTHONPATH", None)


def _chain(here):
    """Import the sitecustomize that Python would have found without us."""
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or os.path.dirname(spec.origin or "") == here:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _load_recorder(package_dir):
    """The module lanescope._autorecord of the package this file belongs to, wherever that lies."""
    import importlib.util

    if "lanescope" not in sys.modules and importlib.util.find_spec("lanescope") is None:
        spec = importlib.util.spec_from_file_location(
            "lanescope",
            os.path.join(package_dir, "__init__.py"),
            submodule_search_locations=[package_dir],
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules["lanescope"] = module
        spec.loader.exec_module(module)
    import lanescope._autorecord as autorecord

    return autorecord


def _main():
    here = os.path.dirname(os.path.abspath(__file__))
    settings = {k: v for k, v in os.environ.items() if k.startswith("LANESCOPE_RECORD")}
    path_of_children = os.environ.get("PYTHONPATH", "")
    _clean_environment(here)
    try:
        if settings.get("LANESCOPE_RECORD") == "1":
            for name in settings:
                os.environ.pop(name, None)
            _load_recorder(os.path.dirname(here)).arm(settings, path_of_children)
    except Exception as error:
        print(f"lanescope: this process is not recorded: {error}", file=sys.stderr)
    finally:
        _chain(here)


_main()
