"""The oldest versions that are allowed."""

from __future__ import annotations

import pytest

oldest = pytest.importorskip("tools.oldest", reason="the tools belong to a checkout")


def test_lower_bounds_become_pins_of_dependencies_and_extras():
    project = {
        "dependencies": ["scipy >= 1.12", "numpy>=1.26"],
        "optional-dependencies": {"cli": ["rich>=13"], "dev": ["rich>=13", "import-linter>=2.1"]},
    }
    project["optional-dependencies"]["scale"] = ["dask[array,dataframe]>=2025.7"]
    assert oldest.pinned(project) == [
        "dask==2025.7",
        "import-linter==2.1",
        "numpy==1.26",
        "rich==13",
        "scipy==1.12",
    ]


@pytest.mark.parametrize("requirement", ["numpy", "numpy>1", "numpy>=1,<2"])
def test_a_requirement_without_a_lower_bound_is_refused(requirement):
    with pytest.raises(ValueError, match="has no lower bound of the form name>=version"):
        oldest.pinned({"dependencies": [requirement]})


def test_every_requirement_of_the_package_has_a_lower_bound(capsys):
    oldest.main()
    printed = capsys.readouterr().out.split()
    assert any(line.startswith("numba==") for line in printed)
    assert len({line.split("==")[0] for line in printed}) == len(printed)
