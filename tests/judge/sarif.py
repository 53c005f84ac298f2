"""Validates SARIF logs by the official schema of SARIF 2.1.0: `python tests/judge/sarif.py LOG...`."""

import json
import sys
from pathlib import Path

import jsonschema

SCHEMA = json.loads((Path(__file__).parent.parent / "schemas" / "sarif-2.1.0.json").read_text())


def problems(log: Path) -> list[str]:
    """What is wrong with a log, one line each."""
    validator = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    errors = validator.iter_errors(json.loads(log.read_text()))
    return [f"{log}: {error.json_path}: {error.message}" for error in errors]


def main(logs: list[str]) -> int:
    """Prints what is wrong with the logs."""
    found = [problem for log in logs for problem in problems(Path(log))]
    print("\n".join(found) or f"{len(logs)} valid")
    return 1 if found or not logs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
