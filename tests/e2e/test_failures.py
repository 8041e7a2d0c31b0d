"""Scripts that fail in a trial: the exit code, the sentence, and their own words about it."""

from __future__ import annotations

import signal
from concurrent.futures import Executor, Future

import pytest

from .conftest import FEW_STEPS, MARK, MODEL, TORCH, TRAIN, Desk, Ended, chosen, cleared

pytestmark = pytest.mark.e2e

BEFORE = "before its first training step"
AFTER = "after 4 steps"
AS_IT_IS = "Run it as it is"

ENDS = {
    "exit 3 before": ("import sys; sys.exit(3)", 87, f"exit status 3 {BEFORE}", AS_IT_IS),
    "exit 3 after": (FEW_STEPS + "raise SystemExit(3)", 88, f"status 3 {AFTER}", AS_IT_IS),
    "exit with text": ("raise SystemExit('no data')", 87, f"status 1 {BEFORE}", AS_IT_IS),
    "_exit 5 before": ("import os; os._exit(5)", 87, f"exit status 5 {BEFORE}", AS_IT_IS),
    "_exit 5 after": (FEW_STEPS + "import os; os._exit(5)", 88, f"status 5 {AFTER}", AS_IT_IS),
    "host memory": ("raise MemoryError", 93, f"The host's memory was exhausted {BEFORE}", "batch"),
    "device memory": (
        FEW_STEPS + "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB')",
        92,
        f"The GPU's memory was exhausted {AFTER}",
        "nvidia-smi",
    ),
    "before the optimizer": (
        MODEL + "model(torch.randn(8, 4)).sum().backward()\nraise ValueError",
        87,
        f"The script failed {BEFORE}: ValueError.",
        AS_IT_IS,
    ),
    "without an optimizer": (
        "import torch\nx = torch.ones(2, requires_grad=True)\n"
        "for _ in range(4):\n    x.sum().backward()\nraise ValueError",
        88,
        f"The script failed {AFTER}: ValueError.",
        AS_IT_IS,
    ),
    "SIGSEGV after": (
        FEW_STEPS + "import os\nos.kill(os.getpid(), 11)\n",
        91,
        "The script was killed by SIGSEGV.",
        "output",
    ),
    "no training": (MODEL, 89, "without a training step", "Does it train"),
    "one step": (MODEL + "step()", 89, "after a single training step", "Let it make more steps"),
    "no torch": ("print('hello')", 89, "without importing torch", "Does it train"),
}


Trials = dict[str, Future[tuple[Desk, Ended]]]


@pytest.fixture(scope="module")
def trials(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pool: Executor
) -> Trials:
    """Those that were asked for, two at a time."""

    def trial(name: str) -> tuple[Desk, Ended]:
        with cleared(tmp_path_factory.mktemp("desk")) as desk:
            desk.write(ENDS[name][0])
            return desk, desk.profile("train.py")

    names = chosen(request, "test_how_it_ends", "name")
    return {name: pool.submit(trial, name) for name in names}


@pytest.mark.parametrize("name", ENDS)
def test_how_it_ends(trials: Trials, name: str) -> None:
    _, code, says, remedy = ENDS[name]
    desk, ended = trials[name].result()
    ended.expect(code, says, remedy)
    assert ended.out == ""
    (trial,) = desk.study()["trials"]
    assert trial["reason"] in ended.sentence
    assert trial["state"] != "complete"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
def test_killed(desk: Desk, name: str) -> None:
    desk.write(
        "import os, sys, signal\nprint('last words', flush=True)\nname = sys.argv[1]\n"
        "os.abort() if name == 'SIGABRT' else os.kill(os.getpid(), signal.Signals[name])"
    )
    ended = desk.profile("train.py", name)
    ended.expect(91, f"The script was killed by {name}.", remedy="output")
    assert "last words" in ended.err
    (trial,) = desk.study()["trials"]
    assert (trial["signal"], trial["exit_status"]) == (name, 128 + signal.Signals[name])


def test_one_that_dies_while_it_tells_where_it_hangs_took_too_long(desk: Desk) -> None:
    """Python reads the stack of a running thread for that, which now and then ends the process."""
    desk.write("import os, signal, time\ntime.sleep(3.5)\nos.kill(os.getpid(), signal.SIGSEGV)")
    ended = desk.profile("--timeout", "5s", "train.py")
    ended.expect(90, "stopped after its limit of 5 seconds", remedy="--timeout")


SYNTAX = "print('one')\nfor in range(3):\n    pass\n"
EARLY = """\
print("loading")
def load(path):
    raise FileNotFoundError(f"no data in {path}")
try:
    load("data/")
except OSError as error:
    raise RuntimeError("cannot start") from error
"""
MIDDLE = (
    TORCH
    + """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        if self.calls == int(sys.argv[1]):
            raise ValueError("boom in forward")
        return self.inner(x)
def explode(gradient):
    raise ArithmeticError("boom in backward")
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    loss = model(torch.randn(8, 4)).square().mean()
    if step == int(sys.argv[2]):
        loss.register_hook(explode)
    try:
        loss.backward()
    except ArithmeticError as error:
        raise RuntimeError("step failed")
    optimizer.step()
"""
)
TRACEBACKS = {
    "syntax": (SYNTAX, [], 86, "not valid Python"),
    "early": (EARLY, [], 87, f"failed {BEFORE}: RuntimeError: cannot start."),
    "forward while roots are sought": (MIDDLE, ["3", "99"], 88, "failed after 2 steps"),
    "forward later on": (MIDDLE, ["9", "99"], 88, "failed after 8 steps"),
    "backward": (MIDDLE, ["99", "1"], 88, "failed after 1 step: RuntimeError: step failed."),
}


@pytest.mark.parametrize("name", TRACEBACKS)
def test_traceback_is_the_scripts_own(desk: Desk, pool: Executor, name: str) -> None:
    script, words, code, says = TRACEBACKS[name]
    desk.write(script)
    alone = pool.submit(desk.python, "train.py", *words, env={MARK: ""})
    ended = desk.profile("train.py", *words)
    plain = alone.result()
    ended.expect(code, says, remedy="Correct it" if code == 86 else AS_IT_IS)
    first, _, rest = ended.err.partition("\n")
    assert first == "hotloop: measuring train.py …"
    assert rest == f"{plain.err}\n{ended.sentence}\n"
    assert plain.code == 1


HANGS = {
    "before torch": (
        "import time\n\ndef wait():\n    time.sleep(1000)\nwait()\n",
        6,
        ["line 4 in wait", "line 5 in <module>"],
    ),
    "in a forward pass": (
        MIDDLE.replace('raise ValueError("boom in forward")', "__import__('time').sleep(999)"),
        20,
        ["line 10 in forward", "line 17 in <module>"],
    ),
}


@pytest.fixture(scope="module", autouse=True)
def hanging(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, waiting: Executor
) -> Trials:
    """Begun before anything else: they take their time and nothing else."""

    def trial(name: str) -> tuple[Desk, Ended]:
        script, limit, _ = HANGS[name]
        with cleared(tmp_path_factory.mktemp("desk")) as desk:
            desk.write(script)
            return desk, desk.profile("--timeout", f"{limit}s", "train.py", "3", "99")

    names = chosen(request, "test_hangs", "name")
    return {name: waiting.submit(trial, name) for name in names}


@pytest.mark.parametrize("name", HANGS)
def test_hangs(hanging: Trials, name: str) -> None:
    """Where it hangs is shown, without frames of ours: they are nobody's reason to hang."""
    _, limit, places = HANGS[name]
    desk, ended = hanging[name].result()
    ended.expect(90, f"stopped after its limit of {limit} seconds", remedy="--timeout")
    for place in places:
        assert f'File "{desk.project}/train.py", {place}' in ended.err


def test_the_end_cannot_be_caught_nor_saved(desk: Desk) -> None:
    loop = "".join(f"    {line}\n" for line in TRAIN.splitlines())
    desk.write(
        "import pathlib\n"
        f"try:\n{loop}except BaseException as error:\n    print('caught', repr(error))\n"
        "finally:\n    pathlib.Path('model.pt').write_text('half trained')\n    print('saved')\n"
    )
    ended = desk.profile("--steps", "3", "train.py")
    assert (ended.code, ended.err.count("\n")) == (0, 1), ended
    assert desk.printed() == ""
    (trial,) = desk.study()["trials"]
    assert trial["state"] == "complete"
    assert trial["shielding"]["kept_apart"] == []
