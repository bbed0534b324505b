"""What holds for all tests: on a busy machine everything takes longer, which is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("driftscale", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("driftscale")
