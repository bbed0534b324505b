"""`driftscale tune`: chooses settings, best uses and rivals for the configurations of a folder."""
