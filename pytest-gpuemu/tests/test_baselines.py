"""Accuracy baselines and saved cases, by the options of the plugin."""

from __future__ import annotations

import os

import pytest
from conftest import Small

ACCURACY = ["--gpuemu-strategies=boundary", "-k", "accuracy"]


def test_snapshots(small: Small) -> None:
    small.change('[[ops]]\nname = "softmax"', '[policies]\naccuracy = true\n[[ops]]\nname = "softmax"')
    snapshots = small.path / "gpuemu-snapshots"

    # Nothing is accepted yet.
    result = small.run(*ACCURACY, "--gpuemu-snapshots=check")
    result.assert_outcomes(failed=1, deselected=1)
    assert not list(snapshots.rglob("*.snap*"))
    # The way out is one of this front.
    result.stdout.fnmatch_lines(["  review   *--gpuemu-snapshots=pending, *--gpuemu-snapshots=update, *"])
    assert "INSTA_UPDATE" not in result.stdout.str()
    result = small.run(*ACCURACY, "--gpuemu-snapshots=pending")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["  review   cargo insta review, or rename *.snap.new to *.snap, or --gpuemu-snapshots=update"]
    )
    assert [path.suffix for path in snapshots.rglob("*.snap*")] == [".new"]
    small.run(*ACCURACY, "--gpuemu-snapshots=update").assert_outcomes(passed=1, deselected=1)
    assert [path for path in snapshots.rglob("*.snap")]
    result = small.run(*ACCURACY, "--gpuemu-snapshots=check", "-v")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["gpuemu.toml::accuracy::softmax::float32 PASSED*"])

    # An answer that is right, and less accurate than it was.
    small.kernel("return right(x, axis) * np.float32(1 + 4e-7)")
    result = small.run(*ACCURACY, "--gpuemu-snapshots=check")
    result.assert_outcomes(failed=1, deselected=1)
    assert "worse than accepted" in result.stdout.str()


def test_choices_of_insta_that_have_no_option(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """`INSTA_UPDATE=force` writes what matches too. The option, where it is given, has the word."""
    small.change('[[ops]]\nname = "softmax"', '[policies]\naccuracy = true\n[[ops]]\nname = "softmax"')
    small.run(*ACCURACY, "--gpuemu-snapshots=update").assert_outcomes(passed=1, deselected=1)
    (snapshot,) = (small.path / "gpuemu-snapshots").rglob("*.snap")
    os.utime(snapshot, (0, 0))
    monkeypatch.setenv("INSTA_UPDATE", "force")
    small.run(*ACCURACY, "--gpuemu-snapshots=check").assert_outcomes(passed=1, deselected=1)
    assert snapshot.stat().st_mtime == 0
    small.run(*ACCURACY).assert_outcomes(passed=1, deselected=1)
    assert snapshot.stat().st_mtime > 0


def test_a_saved_case_by_its_file(small: Small) -> None:
    small.kernel("return right(x, axis) + np.float32(1)")
    small.run("--gpuemu-strategies=boundary").assert_outcomes(failed=1)
    (saved,) = (small.path / "gpuemu-regressions").rglob("*.toml")
    case = f"@{saved.relative_to(small.path)}"
    result = small.pytester.runpytest_inprocess("-p", "no:randomly", f"--gpuemu-case={case}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["1 case in 1 test"])
    small.kernel("return right(x, axis)")
    small.pytester.runpytest_inprocess("-p", "no:randomly", f"--gpuemu-case={case}").assert_outcomes(passed=1)
