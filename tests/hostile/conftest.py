"""The two profiles: a short one that always tries the same, and a long one (`make fuzz`)."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from tests.hostile import outcomes

settings.register_profile(
    "hostile",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=12,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.register_profile(
    "fuzz", settings.get_profile("hostile"), derandomize=False, max_examples=60
)
settings.load_profile("fuzz" if outcomes.FUZZ else "hostile")
