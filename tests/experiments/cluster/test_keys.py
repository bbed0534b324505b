"""The keys of a cluster: secret, never replaced without a request, and refused when they cannot be used."""

import datetime
import os
import stat

import pytest

from emulator.errors import ForeignFileError, InputError
from experiments.cluster import keys
from experiments.cluster.keys import CERTIFICATE, KEY, make_credentials, read_keys, write_keys


@pytest.fixture
def folder(tmp_path):
    write_keys(tmp_path / "keys")
    return tmp_path / "keys"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_can_be_read_by_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        write_keys(tmp_path / "keys")
    finally:
        os.umask(before)
    assert mode(tmp_path / "keys") == 0o700
    assert {path.name: mode(path) for path in (tmp_path / "keys").iterdir()} == {
        CERTIFICATE: 0o600,
        KEY: 0o600,
    }


def test_keys_that_were_written_are_read_for_every_role(folder):
    security = read_keys(folder)
    assert security.require_encryption
    for role in ("client", "scheduler", "worker"):
        assert security.get_connection_args(role)["ssl_context"] is not None


def test_keys_are_replaced_on_request_alone(folder):
    old = (folder / KEY).read_bytes()
    with pytest.raises(InputError, match="there are keys already"):
        write_keys(folder)
    assert (folder / KEY).read_bytes() == old
    write_keys(folder, fresh=True)
    assert (folder / KEY).read_bytes() != old
    read_keys(folder)


def test_keys_are_not_written_through_a_link(tmp_path, folder):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (folder / KEY).unlink()
    (folder / KEY).symlink_to(elsewhere)
    write_keys(folder, fresh=True)
    assert elsewhere.read_text() == "mine"
    assert not (folder / KEY).is_symlink()


def test_keys_are_not_read_through_a_link(tmp_path, folder):
    (folder / KEY).rename(tmp_path / "key")
    (folder / KEY).symlink_to(tmp_path / "key")
    with pytest.raises(ForeignFileError, match=KEY):
        read_keys(folder)


def test_a_folder_that_others_may_write_in_gets_no_keys(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(InputError, match="others may write"):
        write_keys(tmp_path / "open")


def test_a_file_is_no_folder_for_keys(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no folder for keys can be made"):
        write_keys(tmp_path / "file")


@pytest.mark.parametrize("name", [CERTIFICATE, KEY])
@pytest.mark.parametrize("others", [0o640, 0o604, 0o620])
def test_keys_that_others_may_use_are_refused(folder, name, others):
    (folder / name).chmod(others)
    with pytest.raises(InputError, match=rf"{name}: has mode {others:04o}.*chmod 600"):
        read_keys(folder)


@pytest.mark.parametrize("name", [CERTIFICATE, KEY])
@pytest.mark.parametrize(
    "content", [b"", b"no PEM", b"-----BEGIN \xff", b"-----BEGIN " + bytes(2**16), b"-----BEGIN X-----\n"]
)
def test_a_file_that_is_no_pem_is_refused_by_name(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_keys(folder)


@pytest.mark.parametrize("name", [CERTIFICATE, KEY])
def test_missing_keys_are_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: cannot be read.*cluster keys"):
        read_keys(folder)


def test_a_key_that_belongs_to_another_certificate_is_refused(folder):
    (folder / KEY).write_text(make_credentials().key)
    with pytest.raises(InputError, match=KEY):
        read_keys(folder)


@pytest.mark.parametrize("label", ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"])
def test_a_second_certificate_is_refused(folder, label):
    with (folder / CERTIFICATE).open("a") as file:
        file.write(make_credentials().certificate.replace("CERTIFICATE", label))
    with pytest.raises(InputError, match=rf"{CERTIFICATE}: has 2 certificates or .* make new keys"):
        read_keys(folder)


@pytest.mark.parametrize("others", [0o020, 0o002])
def test_keys_in_a_folder_that_others_may_write_in_are_not_read(folder, others):
    folder.chmod(0o700 | others)
    with pytest.raises(InputError, match="keys: others may write in this folder"):
        read_keys(folder)


def test_keys_of_another_user_are_refused(folder, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InputError, match=r"keys: belongs to the user with id \d+, .* copy the keys"):
        read_keys(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", [CERTIFICATE, KEY])
def test_a_file_of_another_user_is_refused(folder, name):
    os.chown(folder / name, 4711, -1)
    with pytest.raises(InputError, match=rf"{name}: belongs to the user with id 4711"):
        read_keys(folder)


def test_keys_that_have_expired_say_since_when(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "CLOCK_SLACK", datetime.timedelta(days=3))
    monkeypatch.setattr(keys, "make_credentials", lambda: make_credentials(valid_days=-1))
    write_keys(tmp_path / "keys")
    with pytest.raises(InputError, match=r"is valid from .* only; .*--fresh makes new ones"):
        read_keys(tmp_path / "keys")


def test_credentials_do_not_show_their_key():
    assert "PRIVATE" not in repr(make_credentials())
