"""`hotloop run` is `python`: all that a script can see of itself is the same, and so is its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import LONG, Desk, Ended

pytestmark = pytest.mark.e2e

FACTS = """\
import os, re, sys
modules = sorted(sys.modules)  # before this script imports anything else
import json, resource, signal, threading, warnings
import sibling
def looks(thing):
    return re.sub(" at 0x[0-9a-f]+", "", repr(thing))
print(json.dumps({
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "name": __name__,
    "file": __file__,
    "main file": sys.modules["__main__"].__file__,
    "spec": looks(__spec__),
    "package": __package__,
    "cwd": os.getcwd(),
    "path": sys.path,
    "executable": sys.executable,
    "prefix": [sys.prefix, sys.base_prefix],
    "flags": repr(sys.flags),
    "x options": sys._xoptions,
    "environment": dict(os.environ),
    "modules": modules,
    "meta path": [looks(finder) for finder in sys.meta_path],
    "path hooks": [looks(hook) for hook in sys.path_hooks],
    "excepthook": sys.excepthook is sys.__excepthook__,
    "displayhook": sys.displayhook is sys.__displayhook__,
    "tracing": [repr(sys.gettrace()), repr(sys.getprofile())],
    "signals": [looks(signal.getsignal(number)) for number in signal.valid_signals()],
    "masked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": threading.active_count(),
    "files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
    "terminal": [os.isatty(number) for number in range(3)],
    "streams": [repr(stream) + stream.errors for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "umask": os.umask(0o22),
    "limits": [resource.getrlimit(number) for number in range(10)],
    "warnings": [looks(entry) for entry in warnings.filters],
    "sibling": sibling.__file__,
    "leads its group": os.getpgid(0) == os.getpid(),
}, indent=1))
"""


ENVIRONMENTS = [{}, {"LANG": "C", "PYTHONPATH": "elsewhere"}, {"LC_ALL": "C"}, {"PYTHONUTF8": "1"}]


def run(desk: Desk, *words: str, env: dict[str, str] | None = None) -> Ended:
    return desk.hotloop("run", "--python", sys.executable, *words, env=env)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_script_cannot_tell(desk: Desk, environment: dict[str, str]) -> None:
    desk.write(FACTS, "sub/train.py")
    desk.write("", "sub/sibling.py")
    words = ("sub/train.py", "--lr", "1e-3", "--help", "", "ä b")
    ours, plain = run(desk, *words, env=environment), desk.python(*words, env=environment)
    assert json.loads(plain.out)["argv"] == list(words)
    assert json.loads(ours.out) == json.loads(plain.out)
    assert ours == plain


def test_a_module_cannot_tell(desk: Desk) -> None:
    desk.write("", "package/__init__.py")
    desk.write(FACTS.replace("import sibling", "from . import sibling"), "package/train.py")
    desk.write("", "package/sibling.py")
    ours = run(desk, "-m", "package.train", "--epochs", "3")
    plain = desk.python("-m", "package.train", "--epochs", "3")
    assert json.loads(plain.out)["name"] == "__main__"
    assert json.loads(ours.out) == json.loads(plain.out)
    assert ours == plain


def test_a_folder_is_run_too(desk: Desk) -> None:
    desk.write("print(__name__, __file__)", "app/__main__.py")
    assert desk.hotloop("run", "app") == desk.python("app")


TORCH_FACTS = """\
import json, sys, os
before = [type(finder).__qualname__ for finder in sys.meta_path]
import torch
from torch.utils.data import DataLoader
hooks = sys.modules["torch.optim.optimizer"]
def looks(thing):
    code = getattr(thing, "__code__", None)
    return [repr(type(thing)), thing.__qualname__, thing.__module__, code and code.co_filename]
print(json.dumps({
    "meta path": [before, [type(finder).__qualname__ for finder in sys.meta_path]],
    "functions": [looks(thing) for thing in (
        torch.nn.Module.__call__, torch.nn.Linear.__call__, DataLoader.__init__,
        DataLoader.__iter__, torch.utils.data.dataloader._BaseDataLoaderIter.__next__,
        torch.autograd.backward, torch.autograd.grad, torch.Tensor.backward,
        torch.optim.Optimizer.__init__, torch.optim.Optimizer.zero_grad,
        torch.optim.SGD.step, torch.save, torch.load, torch.compile, os._exit, open, os.replace,
    )],
    "methods": [repr(torch.Tensor.to), repr(torch.Tensor.cuda)],
    "hooks": [len(hooks._global_optimizer_pre_hooks), len(hooks._global_optimizer_post_hooks)],
    "module hooks": [len(value) for name, value in sorted(vars(torch.nn.modules.module).items())
                     if name.startswith("_global_") and isinstance(value, dict)],
    "excepthook": sys.excepthook is sys.__excepthook__,
    "hotloop": [name for name in sys.modules if "hotloop" in name],
    "environment": dict(os.environ),
    "threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
}, default=repr, indent=1))
"""


def test_nothing_of_torch_differs(desk: Desk) -> None:
    desk.write(TORCH_FACTS)
    desk.write('{"version": 1, "levers": []}', "empty.json")
    ours, plain = desk.hotloop("run", "--plan", "empty.json", "train.py"), desk.python("train.py")
    assert json.loads(plain.out)["hooks"] == [0, 0]
    assert json.loads(ours.out) == json.loads(plain.out)


@pytest.mark.parametrize("status", ["0", "3", "80", "99", "255", "'no data'", "None", "-1"])
def test_exit_status(desk: Desk, status: str) -> None:
    desk.write(f"import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit({status})")
    ended = desk.hotloop("run", "--status", "status.json", "train.py")
    assert ended == desk.python("train.py")
    assert json.loads((desk.project / "status.json").read_text()) == {"started": True}


def test_an_exception(desk: Desk) -> None:
    desk.write("def f():\n    raise ValueError('ä')\nf()")
    ended = desk.hotloop("run", "train.py")
    assert ended == desk.python("train.py")
    assert ended.code == 1


def test_bytes_pass_untouched(desk: Desk) -> None:
    desk.write(
        "import sys\ntext = sys.stdin.buffer.read()\n"
        "sys.stdout.buffer.write(b'\\xff\\x00\\r\\n' + text)\n"
        "sys.stderr.buffer.write(b'\\xfe' + text)\n"
    )
    ended = desk.hotloop("run", "train.py", stdin="from stdin")
    assert ended == desk.python("train.py", stdin="from stdin")
    assert ended.out.endswith("\r\nfrom stdin")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"])
def test_signals(desk: Desk, name: str) -> None:
    desk.write("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    ends = []
    for argv in ([str(Path(sys.executable).with_name("hotloop")), "run"], [sys.executable]):
        process = subprocess.Popen(
            [*argv, "train.py"],
            cwd=desk.project,
            env=desk.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.Signals[name])
        _, err = process.communicate(timeout=LONG)
        lines = err.splitlines()  # between them: the line that it happened to be at
        ends.append((process.returncode, lines[:1], lines[-1:]))
    assert ends[0] == ends[1]
    assert ends[0][0] == -signal.Signals[name]


def test_start_methods(desk: Desk) -> None:
    desk.write(
        """\
import multiprocessing, sys
def facts(number):
    main = sys.modules["__main__"]
    modules = [name for name in sys.modules if "hotloop" in name]
    return number, __name__, main.__name__, main.__file__, sys.argv, sys.path, modules
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(facts, range(2)))
"""
    )
    ours, plain = desk.hotloop("run", "train.py", "-x"), desk.python("train.py", "-x")
    assert ours == plain
    assert plain.out.count("\n") == 3


PLANS = {
    "absent": (None, "There is no plan file"),
    "not JSON": ("{", "cannot be read as JSON"),
    "binary": ("\0\0", "cannot be read as JSON"),
    "no version": ("[1]", 'it has no "version"'),
    "newer": ('{"version": 999}', "a plan of version 999"),
    "unknown lever": (
        '{"version": 1, "levers": [{"lever": "warp_drive"}]}',
        "an optimisation that this hotloop does not have: 'warp_drive'",
    ),
    "odd lever": ('{"version": 1, "levers": ["warp"]}', "an optimisation that this hotloop"),
    "odd levers": ('{"version": 1, "levers": {}}', '"levers" must be a list'),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_cannot_be_kept(desk: Desk, name: str) -> None:
    """The script is not run then: it would not be the run that was asked for."""
    text, says = PLANS[name]
    desk.write("print('must not run')")
    if text is not None:
        desk.write(text, "plan.json")
    desk.write('{"started": true}', "status.json")  # left by an earlier run
    ended = desk.hotloop("run", "--status", "status.json", "--plan", "plan.json", "train.py")
    ended.expect(85, says, remedy=" ")
    assert ended.out == ""
    assert not (desk.project / "status.json").exists()


def test_a_status_that_cannot_be_written(desk: Desk) -> None:
    desk.write("print('must not run')")
    ended = desk.hotloop("run", "--status", "no/such/folder/status", "train.py")
    ended.expect(94, "cannot be written", remedy="another file")
    assert ended.out == ""
