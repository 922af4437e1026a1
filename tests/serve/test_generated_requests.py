"""Requests that are generated from the OpenAPI text; `fuzzing.py` sends many more of them."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from samewise.serve.checking import check_folder
from samewise.serve.http_app import make_app
from samewise.serve.service import Service
from tests.serve.conftest import running
from tests.serve.fuzzing import answered, fill

EXAMPLES = 3


def checks():
    """What every answer must meet."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
    ]


def test_every_answer_is_one_that_the_text_names(tmp_path):
    service = Service(tmp_path / "data")
    with running(make_app(service)) as url:
        with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
            fill(http)
            schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
            names = [found.ok().label for found in schema.get_all_operations()]
            assert "POST /collections/{collection}/feedback" in names
            for found in schema.get_all_operations():
                operation = found.ok()
                if operation.label != "DELETE /collections/{collection}":
                    for mode in GenerationMode:
                        send(operation, mode)
            counts = answered(http.get("/metrics").text)
    assert counts[200] and counts[422] and not any(status >= 500 for status in counts)
    _, problems = check_folder(tmp_path / "data")
    assert not problems


def send(operation, mode):
    """A few requests to a route, which fit its schema or do not."""
    pick = random.Random(operation.label)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def one(case):
        if "collection" in (case.path_parameters or {}):
            case.path_parameters["collection"] = pick.choice(["c", "t", "nothing"])
        if "/events" in operation.path:
            case.query = {**(case.query or {}), "follow": "false"}
        case.call_and_validate(checks=checks())

    # Nothing can be wrong with a request that has no parameters.
    with suppress(Unsatisfiable):
        one()
