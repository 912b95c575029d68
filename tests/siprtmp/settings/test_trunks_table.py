"""The tables of trunks are read, and a mistake in one is named."""

import tomllib

import pytest

from p2psip.sip.uri import Uri
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import load
from siprtmp.settings.trunks import TrunkSettings, read_trunks

GOOD = 'name = "a-1"\naddress = "sip:me@a.example"\nnumbers = ["+49*"]\npassword = "secret"\n'


def read(text, **environment):
    return read_trunks(tomllib.loads(f"[[trunk]]\n{text}")["trunk"], environment)


def test_a_table_is_read():
    [trunk] = read(GOOD + 'login = "auth"\nserver = "sip:b.example:5070;transport=tcp"\n')
    server = Uri.parse("sip:b.example:5070;transport=tcp")
    address = Uri.parse("sip:me@a.example")
    assert trunk == TrunkSettings("a-1", address, ("+49*",), "secret", "auth", server)
    assert trunk.register and trunk.in_file and "secret" not in repr(trunk)
    assert trunk.refresh == 120
    [trunk] = read(
        GOOD.replace('["+49*"]', '"0*"').replace('password = "secret"', "register=false")
    )
    assert trunk.numbers == ("0*",) and not trunk.register


def test_a_password_comes_from_the_environment():
    [trunk] = read(GOOD.replace('password = "secret"', ""), TRUNK_PASSWORD_A_1="hidden")
    assert trunk.password == "hidden" and not trunk.in_file


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (GOOD.replace("numbers", "nubers"), "unknown key 'nubers'; did you mean numbers"),
        (GOOD.replace("a-1", "a b"), "letters, digits"),
        (GOOD.replace("sip:me@a", "sip:a"), "address needs a user"),
        (GOOD.replace("sip:me@a.example", "tel:+49"), "no SIP URI"),
        (GOOD.replace("sip:me@a.example", "sip:me:pass@a.example"), "no SIP URI"),
        (GOOD.replace("sip:me@a.example", "sip:me@["), "no SIP URI"),
        (
            GOOD.replace('password = "secret"', ""),
            "needs a password, here or in TRUNK_PASSWORD_A_1",
        ),
        (GOOD.replace('"secret"', "1"), "password must be a string"),
        (GOOD + "register = 1\n", "register must be true or false"),
        (GOOD + "refresh = 4\n", "refresh 4 is not between 5 and 86400"),
        (GOOD + "refresh = true\n", "refresh must be a number"),
        (GOOD.replace('["+49*"]', "[1]"), "numbers are patterns"),
        (GOOD + f"[[trunk]]\n{GOOD}", "two are named a-1"),
    ],
)
def test_mistakes(text, mistake):
    with pytest.raises(ValueError, match=mistake):
        read(text)


def test_the_file_has_tables_of_trunks(tmp_path):
    path = tmp_path / "siprtmp.toml"
    path.write_text(f"[[trunk]]\n{GOOD}")
    assert load(["--config", str(path)]).trunk[0].name == "a-1"
    with pytest.raises(ConfigError, match=r"\[\[trunk\]\] needs --sip"):
        load(["--config", str(path), "--sip", "off"])
    path.write_text('trunk = "a"')
    with pytest.raises(ConfigError, match=r"trunk: is a table: \[\[trunk\]\]"):
        load(["--config", str(path)])
