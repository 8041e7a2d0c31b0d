"""Started as `python main.py [-m] FILE:CLASS [name=value …]`, in the user's own interpreter.

Finds its own package first: that interpreter need not have hotloop installed. What it starts anew
(a worker, by spawn) comes through here too, before it imports the job.
"""

import importlib.util
import os
import sys


def _let_hotloop_in() -> None:
    """In a trial it is there already. From its own folder, without that folder's neighbours."""
    if "hotloop" in sys.modules:
        return
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = importlib.util.spec_from_file_location(
        "hotloop", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hotloop"] = module
    spec.loader.exec_module(module)


if __name__ in ("__main__", "__mp_main__"):
    _let_hotloop_in()

if __name__ == "__main__":
    from hotloop.runtime.owned.program import main

    sys.exit(main(sys.argv[1:]))
