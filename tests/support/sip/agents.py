"""Agents whose settings a test names without their groups."""

from dataclasses import fields

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account, CallSettings, NetworkSettings

GROUPS = Account, NetworkSettings, CallSettings


def agent_with(**options):
    """An agent with these settings, and the defaults of all others."""
    of = {each.name: kind for kind in GROUPS for each in fields(kind)}
    chosen = {kind: {} for kind in GROUPS}
    for name, value in options.items():
        chosen[of[name]][name] = value
    return Agent(*(kind(**chosen[kind]) for kind in GROUPS))
