"""What a run says below pytest's own output: cases, the worst error of each op, the slowest tests."""

from __future__ import annotations

import sys
from typing import Any

PREFIX = "gpuemu."
SHOWN = 5
LEAST = 0.0005
SLOW_SECONDS = 1.0


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


class Summary:
    """Gathers reports; under xdist, those of all workers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.tests = 0
        self.cases = 0
        self.worst: dict[str, tuple[float, str]] = {}
        self.times: list[tuple[float, str]] = []
        self.drawn = False

    def progress(self, test: str, case: int, cases: int) -> None:
        """One line, drawn over itself, while a test takes long and somebody watches."""
        stream = sys.__stderr__
        if stream is not None and stream.isatty():
            stream.write(f"\r{test}: case {case} of {cases}\x1b[K")
            stream.flush()
            self.drawn = True

    def add(self, report: Any) -> None:
        if self.drawn and sys.__stderr__ is not None:
            sys.__stderr__.write("\r\x1b[K")
            self.drawn = False
        properties = [entry for entry in report.user_properties if entry[0].startswith(PREFIX)]
        if report.when != "call" or not properties:
            return
        test = report.location[2]
        self.tests += 1
        self.times.append((report.duration, test))
        for name, value in properties:
            if name == PREFIX + "cases":
                self.cases += int(value)
            elif name.endswith(".worst_of_bound") and report.passed:
                op = test.split("::")[1 if test.startswith(("kernel::", "accuracy::")) else 0]
                share = float(value)
                if op not in self.worst or share > self.worst[op][0]:
                    self.worst[op] = (share, test)

    def write(self, terminal: Any) -> None:
        if not self.tests and not self.told:
            return
        terminal.section("gpuemu")
        terminal.line(f"{counted(self.cases, 'case')} in {counted(self.tests, 'test')}")
        ranked = sorted(self.worst.items(), key=lambda entry: (-entry[1][0], entry[0]))
        # Copies and integers have no error to speak of.
        ranked = [entry for entry in ranked if entry[1][0] >= LEAST]
        shown = len(ranked) if terminal.verbosity > 0 else SHOWN
        for place, (_, (share, test)) in enumerate(ranked[:shown]):
            terminal.line(f"{'worst errors' if place == 0 else '':<14}{share:7.1%} of what is allowed, {test}")
        if len(ranked) > shown:
            terminal.line(f"{'':<14}and {len(ranked) - shown} more ops (-v)")
        slowest = sorted(self.times, key=lambda entry: (-entry[0], entry[1]))
        slow = [(seconds, test) for seconds, test in slowest[:SHOWN] if seconds >= SLOW_SECONDS]
        for place, (seconds, test) in enumerate(slow):
            terminal.line(f"{'slowest' if place == 0 else '':<14}{seconds:6.1f} s  {test}")
        for line in sorted(set(self.told)):
            if not line.startswith("largest error of a passing test"):
                terminal.line(line)
