"""Settings of all tests: no deadlines, since tests take longer on a busy machine, and default signals."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

collect_ignore = ["old_plugin_package"]  # which warns when it is imported: test_old_names does that

settings.register_profile("driftscale", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("driftscale")

# nohup, and a shell in the background, have them ignored, and all that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
