"""The settings of the tree of resources."""

from dataclasses import dataclass
from pathlib import Path

from rtmplite.net.settings import FILE, Many, setting, text
from siprtmp.settings.types import check_mode, check_origin, check_service, check_told_host
from siprtmp.web.resources.mode import DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class ResourceSettings:
    """The tree of resources that pages and programs share."""

    tree_mode: str = setting(
        text("MODE"),
        DEFAULT_MODE,
        "Serve resources at /tree of --http, where the top has this mode: cruws for owner, group, "
        "users and anonymous clients, with - for what a class may not; or off ({default}).",
        note="See the page on resources. Several workers serve none.",
        check=check_mode,
    )
    tree_origin: tuple[str, ...] = setting(
        Many(text("ORIGIN")),
        (),
        "Let pages of these sites ask for resources, beside the gateway's own pages.",
        example=["https://www.example.org"],
        check=check_origin,
    )
    tree_webhook: tuple[str, ...] = setting(
        Many(text("HOST")),
        (),
        "Let users have notifications of resources posted to URLs of this host, of the hosts of "
        "*.DOMAIN, or of a NETWORK/BITS, each with :PORT unless that is 80 or 443.",
        note="A host counts for public addresses; one that is not public needs a network of such, "
        "as 192.168.1.7 or 10.0.0.0/8.",
        example=["crm.example", "192.168.1.7:8080"],
        check=check_told_host,
    )
    tree_redis: str | None = setting(
        text("URL"),
        None,
        "Share persistent resources with other gateways through this Redis (redis://HOST:PORT/0).",
        note="It needs the extra `redis`, and replaces the file of resources in the folder "
        "`state`. Whoever can write there can change them all: give it a password, and no address "
        "that strangers can reach.",
        example="redis://:PASSWORD@192.0.2.7:6379/0",
    )
    tree_push: tuple[str, ...] = setting(
        Many(text("HOST")),
        (),
        "Let operators push streams to RTMP servers of this host, of the hosts of *.DOMAIN, or of "
        "a NETWORK/BITS, each with :PORT unless that is 1935 or 443.",
        note="A host counts as for tree-webhook. Pushes that always run need no entry: see `push`.",
        example=["live.example", "192.168.1.7:1936"],
        check=check_told_host,
    )
    token_key: Path | None = setting(
        FILE,
        None,
        "Take bearer tokens (JWT) for resources that this key verifies: a secret, or a public key "
        "in PEM.",
        note="It needs the extra `web`. A token names its user as `sub`, when it ends as `exp`, "
        "and may name `groups`.",
        example="token.key",
    )
    tree_auth: str | None = setting(
        text("URL"),
        None,
        "Ask this web service who clients of resources are, by the token or the name and password "
        "that they present, unless --token-key or --users knows.",
        note="It is posted JSON, and answers with the user and its groups, or with 401. Passwords "
        "go there as they are: use https for another machine.",
        example="http://127.0.0.1:9000/who",
        check=check_service,
    )
