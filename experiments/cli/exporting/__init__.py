"""`driftscale export`: results of finished runs for other programs."""
