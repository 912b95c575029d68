"""Agents on loopback, closed at the end of a test."""

import pytest

from p2psip.agent import Agent


@pytest.fixture
def make():
    """Agents that are closed at the end."""
    agents = []

    def run(user, **options):
        agents.append(Agent(user=user, **options))
        return agents[-1]

    yield run
    for agent in agents:
        agent.close(timeout=0.5)


@pytest.fixture
def alice(make):
    return make("alice", display="Alice")


@pytest.fixture
def bob(make):
    return make("bob")
