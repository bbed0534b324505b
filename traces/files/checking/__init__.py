"""Every violation of the format in a trace folder, not only the first one, and remarks on what is unusual."""

from traces.files.checking.findings import Finding, Findings
from traces.files.checking.folder import check_folder

__all__ = ["Finding", "Findings", "check_folder"]
