"""`driftscale traces`: the commands, and what they print."""
