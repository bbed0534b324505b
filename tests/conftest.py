"""Settings of all tests: no deadlines, since tests take longer on a busy machine, and default signals."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

collect_ignore = ["old_plugin_package"]  # importing it warns; test_old_names does so on purpose

settings.register_profile("driftscale", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("driftscale")

# nohup and background shells ignore these signals, and all processes that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
