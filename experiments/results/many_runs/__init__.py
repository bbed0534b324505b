"""Tables over many run directories: `driftscale compare`, and `report` of a folder."""
