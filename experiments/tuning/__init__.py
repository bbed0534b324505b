"""`driftscale tune`: chooses settings, uses and the rival of each configuration of a folder, by halving over seeds."""
