"""What can go wrong, as one tree. Each error says what to do about it and carries its exit code.

    HotloopError
    ├── BudgetTooSmall            79   the time granted does not do for a first measurement
    ├── UsageError                80   the command line itself
    ├── ScriptNotFound            81   ┐
    ├── NotPython                 82   │
    ├── InterpreterNotFound       83   │ before anything of the user's runs
    ├── TorchNotFound             84   │
    ├── PlanError                 85   ┘
    ├── ScriptSyntaxError         86   ┐
    ├── FailedBeforeFirstStep     87   │
    ├── FailedInTraining          88   │
    ├── NothingMeasured           89   │ how a trial of the user's script ended
    ├── TimedOut                  90   │
    ├── KilledBySignal            91   │
    ├── DeviceOutOfMemory         92   │
    ├── HostOutOfMemory           93   ┘
    ├── StudyNotWritable          94   our own files: the study, the plan, a report
    ├── ResultUnreadable          95
    ├── NotApplied                96   an optimisation of the plan did not take effect
    ├── FolderBusy                97   another hotloop keeps its studies there at this moment
    ├── StudyMismatch             98   the study to go on with is another job's
    ├── HotloopFailed             99   a bug of ours
    ├── JobInvalid               100   a class that describes a job lacks something
    ├── StudyUnreadable          101   there is no such study, or its file is no study
    ├── NotComparable            102   two studies that cannot be compared
    └── NoPainter                103   nothing is installed that makes PNG of a figure

129, 130, 141 and 143 mean what they mean everywhere: stopped by a closed terminal, by Ctrl-C, by a
pipe that nobody reads any more, by SIGTERM.

`hotloop run` hands on the script's own exit status, whatever it is, and uses one of ours only when
the script was never started, or was stopped because its plan did not take effect. 79 to 119 is a
band that neither Python (1, 2, 120), the shell (126 to 165) nor sysexits.h (64 to 78) uses;
`run --status FILE` settles the rare doubt.
"""

from __future__ import annotations


class HotloopError(Exception):
    """One clear sentence about what is wrong, and one about the remedy."""

    exit_code = 99

    def __init__(self, sentence: str, remedy: str = "", *, detail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.remedy = remedy
        self.detail = detail
        """What the script itself printed about it, such as its traceback."""

    def __str__(self) -> str:
        """As a program or a notebook shows it, where nobody asks for the remedy."""
        return f"{self.sentence} {self.remedy}".strip()


class BudgetTooSmall(HotloopError):
    exit_code = 79


class UsageError(HotloopError):
    exit_code = 80


class ScriptNotFound(HotloopError):
    exit_code = 81


class NotPython(HotloopError):
    exit_code = 82


class InterpreterNotFound(HotloopError):
    exit_code = 83


class TorchNotFound(HotloopError):
    exit_code = 84


class PlanError(HotloopError):
    exit_code = 85


class ScriptSyntaxError(HotloopError):
    exit_code = 86


class FailedBeforeFirstStep(HotloopError):
    exit_code = 87


class FailedInTraining(HotloopError):
    exit_code = 88


class NothingMeasured(HotloopError):
    exit_code = 89


class TimedOut(HotloopError):
    exit_code = 90


class KilledBySignal(HotloopError):
    exit_code = 91


class DeviceOutOfMemory(HotloopError):
    exit_code = 92


class HostOutOfMemory(HotloopError):
    exit_code = 93


class StudyNotWritable(HotloopError):
    exit_code = 94


class ResultUnreadable(HotloopError):
    exit_code = 95


class NotApplied(HotloopError):
    exit_code = 96


class FolderBusy(HotloopError):
    exit_code = 97


class StudyMismatch(HotloopError):
    exit_code = 98


class HotloopFailed(HotloopError):
    exit_code = 99


class JobInvalid(HotloopError):
    """Of a class that describes a job: names the method and what it must return."""

    exit_code = 100


class StudyUnreadable(HotloopError):
    exit_code = 101


class NotComparable(HotloopError):
    exit_code = 102


class NoPainter(HotloopError):
    exit_code = 103
