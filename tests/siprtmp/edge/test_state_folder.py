"""The folder of `--state`: made, closed to others, and held by one gateway at a time."""

import stat

import pytest

from siprtmp import __main__
from siprtmp.edge.state_folder import StateFolder
from siprtmp.operation.arguments import ConfigError


def test_it_is_made_for_its_owner_alone(tmp_path):
    folder = StateFolder(tmp_path / "var" / "state")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.close()


def test_one_that_is_there_is_taken_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "old").write_text("kept")
    StateFolder(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755 and (tmp_path / "old").exists()


def test_it_is_never_shared_by_two_gateways(tmp_path):
    first = StateFolder(tmp_path)
    with pytest.raises(ConfigError, match="another running gateway"):
        StateFolder(tmp_path)
    first.close()
    StateFolder(tmp_path).close()


def test_one_that_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o770)
    with pytest.raises(ConfigError, match="chmod go-w"):
        StateFolder(tmp_path)


@pytest.mark.parametrize("name", ["file", "file/inside", "/proc/none/here"])
def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(tmp_path, name, capsys):
    (tmp_path / "file").write_text("")
    path = tmp_path / name
    off = ("--rtmp", "127.0.0.1:0", "--rtmfp", "off", "--sip", "off", "--http", "off")
    assert __main__.main(["serve", *off, "--state", str(path)]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"siprtmp: --state {path}: ") and err.count("\n") == 1
