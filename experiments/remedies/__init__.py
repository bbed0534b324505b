"""What was probably meant by what is refused, looked up where the error is raised."""
