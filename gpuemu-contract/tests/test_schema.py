"""Judges gpuemu.schema.json with a validator that others wrote: run with pytest, needs the package jsonschema."""

import json
from pathlib import Path

import jsonschema
import pytest
import tomllib

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parent.parent / "gpuemu.schema.json").read_text())
GOOD = sorted((HERE / "documents" / "good").glob("*.toml")) + sorted((HERE / "projects").glob("*/gpuemu.toml"))
BAD = sorted((HERE / "documents" / "bad").glob("*.toml"))


def validator():
    return jsonschema.Draft7Validator(SCHEMA)


def test_the_schema_is_one():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_good_documents_are_valid(path):
    errors = [error.message for error in validator().iter_errors(tomllib.loads(path.read_text()))]
    assert errors == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_documents_are_not(path):
    assert not validator().is_valid(tomllib.loads(path.read_text()))


def test_there_are_documents():
    assert len(GOOD) >= 9 and len(BAD) >= 18
