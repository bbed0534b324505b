"""What data reaches whom, when; and who is online when."""
