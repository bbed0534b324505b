from __future__ import annotations

import hashlib
from pathlib import Path

from tests.golden.logs import log_sha256

ROUND = b'{"kind":"round","onsets":7}\n'


def test_a_log_is_hashed_as_it_was_before_its_header_had_onsets(tmp_path: Path) -> None:
    path, expected = tmp_path / "log.jsonl", hashlib.sha256(b'{"kind":"run","seed":0}\n' + ROUND).hexdigest()
    for onsets in (b"", b',"onsets":{"steps":[1],"counts":[2],"clients":[[0,3]]}'):
        path.write_bytes(b'{"kind":"run","seed":0' + onsets + b"}\n" + ROUND)
        assert log_sha256(path) == expected
    path.write_bytes(b'{"kind":"run","seed":1}\n' + ROUND)
    assert log_sha256(path) != expected
