from __future__ import annotations

import samewise
from samewise.catalog import WHERE
from tools.stub import STUB, text


def test_the_stub_says_what_the_catalog_says():
    assert STUB.read_text(encoding="utf-8") == text()


def test_every_public_name_is_where_the_catalog_says():
    for name, module in WHERE.items():
        value = getattr(samewise, name)
        assert value.__name__ == (module if module == f"samewise.{name}" else name)
