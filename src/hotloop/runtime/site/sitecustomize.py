"""Python imports this before the script of a trial, because its folder stands first on PYTHONPATH.

So the script itself is started as `python train.py`, by Python, and not by us: `__main__`,
`sys.argv`, worker start methods and tracebacks are the script's own.
"""

import sys

_loaded = tuple(sys.modules)

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
import os  # noqa: E402


def _step_aside(folder: str) -> None:
    """Neither the script nor a process it starts shall find this folder on its path."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    rest = os.environ.pop("HOTLOOP_PYTHONPATH", None)
    if rest is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = rest


def _run_the_users_own() -> None:
    """The sitecustomize that Python would have imported, had ours not stood before it."""
    spec = importlib.machinery.PathFinder.find_spec(__name__, sys.path)
    if spec is None or spec.loader is None:
        # What Python expects to hear where there is none; ours is then not left in sys.modules.
        raise ImportError("there is no sitecustomize but ours", name=__name__)
    module = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


def _load_hotloop(package: str) -> None:
    """From its own folder, without putting that folder's neighbours on the script's path."""
    spec = importlib.util.spec_from_file_location(
        "hotloop",
        os.path.join(package, "__init__.py"),
        submodule_search_locations=[package],
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hotloop"] = module
    spec.loader.exec_module(module)


_here = os.path.dirname(os.path.abspath(__file__))
_spec = os.environ.pop("HOTLOOP_SPEC", None)
_step_aside(_here)
if _spec is not None:
    _load_hotloop(os.path.dirname(os.path.dirname(_here)))
    from hotloop.runtime import child, homonyms

    child.begin(_spec)
    homonyms.forget(_loaded)
_run_the_users_own()
