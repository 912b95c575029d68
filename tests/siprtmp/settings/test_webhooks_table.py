"""The tables [[webhook]]: what is read of them, and what is refused."""

import re
import tomllib

import pytest

from siprtmp.calls.observer import CallEvent
from siprtmp.settings.webhooks import EVENTS, SECRET, WebhookSettings, read_webhooks

URL = "https://crm.example/calls"


def read(text, environment=()):
    return read_webhooks(tomllib.loads(f"[[webhook]]\n{text}\n")["webhook"], dict(environment))


def test_a_table_is_read():
    [hook] = read(f'url = "{URL}"\nsecret = "s"\nevents = ["ringing", "ended"]')
    assert hook == WebhookSettings(URL, ("ringing", "ended"), "s") and hook.in_file
    assert "secret" not in repr(hook)


def test_the_secret_may_be_in_the_environment():
    [hook] = read(f'url = "{URL}"', {SECRET: "s"})
    assert hook == WebhookSettings(URL, EVENTS, "s") and not hook.in_file


def test_the_events_are_those_of_calls():
    assert {each.value for each in CallEvent} == set(EVENTS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f'url = "{URL}"', f"needs a secret, here or in {SECRET}"),
        ('secret = "s"', "is not http://"),
        ('url = "ftp://crm.example/"\nsecret = "s"', "is not http://"),
        (f'url = "{URL}"\nsecret = "s"\nevents = ["sung"]', "events are some of begun"),
        (f'url = "{URL}"\nsecret = "s"\nevents = []', "events are some of begun"),
        (f'url = "{URL}"\nsecrets = "s"', "unknown key 'secrets'; did you mean"),
    ],
)
def test_a_mistake_is_told(text, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read(text)
    with pytest.raises(ValueError, match="is a table"):
        read_webhooks("x")
