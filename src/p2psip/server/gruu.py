"""GRUUs: URIs that lead to one device of a user, from anywhere.

Implements RFC 5627 §5, with GRUUs made as in its Appendix A.

    >>> aor = Uri.parse("sip:bob@example.com")
    >>> print(public_gruu(aor, "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"))
    sip:bob@example.com;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
    >>> gruu = temporary_gruu(b"a secret", aor, "00000000000000ff", bytes)
    >>> gruu.user.startswith("tgruu."), gruu.host, number_of(b"a secret", gruu)
    (True, 'example.com', '00000000000000ff')

A public GRUU is the address-of-record with the name of the device beside it, so there is nothing to
store: it is valid for as long as the user is.  A temporary one holds the number of its device,
sealed.  Each answer to a REGISTER has another one, and nobody but the registrar can tell whose it
is; the number is kept with the bindings of the device, and goes with the last of them.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from p2psip.errors import RemoteError
from p2psip.server.domains import Aor, Domains
from p2psip.server.location import Binding, LocationStore
from p2psip.sip.address import Address
from p2psip.sip.grammar import quote
from p2psip.sip.params import drop
from p2psip.sip.uri import Uri, equivalent

PREFIX: Final = "tgruu."  # Source: §A.2, of the user part
NUMBER: Final = 8  # octets that name a device
NONCE: Final = 12  # octets, fresh for each GRUU
SEAL: Final = 10  # octets of HMAC-SHA-256: §A.2 has 80 bits
SECRET: Final = 32  # octets
PUBLIC, TEMPORARY = "pub-gruu", "temp-gruu"

Random = Callable[[int], bytes]


class Gruus:
    """The GRUUs of a registrar, whose key is with the bindings in the `store`: §5.4."""

    def __init__(self, store: LocationStore, random: Random, domains: Domains) -> None:
        self._store, self._random, self._domains = store, random, domains
        self._owners: dict[str, Aor] = {}  # by the number of a device

    def refuse_loop(self, contact: Address, to: Uri, aor: Aor) -> None:
        """Refuse a device's contact that would lead a call back to its own user, with 403: §5.1."""
        uri = contact.uri
        if contact.instance is None:
            return
        if equivalent(uri, _bare(to)):
            raise RemoteError("Contact Is The Address Of Record", 403)  # §5.1 [403-for-the-aor]
        if uri.is_gruu and self.owner(uri) == aor:
            raise RemoteError("Contact Is A GRUU Of This User", 403)  # §5.1 [403-for-own-gruu]

    def numbered(self, new: Binding, known: Sequence[Binding]) -> Binding:
        """A new binding with the number of its device: §5.1.

        It is that of the bindings before, `known` from the oldest on, unless the phone has begun
        anew: a new Call-ID makes all temporary GRUUs that were given out invalid.
        """
        if new.instance is None:
            return new
        same = [each for each in known if each.instance == new.instance and each.gruu]
        before = [each for each in same if not new.reg_id or each.reg_id == new.reg_id]
        if same and all(each.call_id == new.call_id for each in before[-1:]):
            return replace(new, gruu=same[-1].gruu)  # §5.4 [valid-until-invalidated]
        return replace(new, gruu=self._random(NUMBER).hex())  # §5.1 [new-call-id-invalidates]

    def told(self, bindings: Sequence[Binding], to: Uri) -> list[Address]:
        """The contacts of bindings, each with both GRUUs of its device, for a 200: §5.2."""
        made: dict[str, Uri] = {}
        contacts = []
        for binding in bindings:
            contact, number = binding.contact, binding.gruu
            if binding.instance is not None and number:
                if number not in made:
                    # §5.1 [temporary-is-made], §5.2 [temporary-is-the-latest]
                    made[number] = temporary_gruu(self._secret, to, number, self._random)
                # §5.2 [public-in-200] [temporary-in-200]
                public, temporary = public_gruu(to, binding.instance), made[number]
                for name, gruu in ((PUBLIC, public), (TEMPORARY, temporary)):
                    # RFC 5630 §5.2.1 [gruu-as-its-contact]
                    gruu = gruu.replace(scheme=contact.uri.scheme)
                    contact = contact.with_param(name, quote(str(gruu)))
            contacts.append(contact)
        return contacts

    def moved(self, aor: Aor, before: Sequence[Binding], after: Sequence[Binding]) -> None:
        """Note that a user has other bindings now: a number goes with the last of them (§5.3)."""
        for binding in before:
            self._owners.pop(binding.gruu, None)  # §5.3 [gone-with-the-last]
        self._owners |= {binding.gruu: aor for binding in after if binding.gruu}

    def owner(self, uri: Uri) -> Aor | None:
        """The user of a GRUU, None if it is not one of ours: §5.4."""
        aor = self._domains.address_of_record(uri)  # RFC 5630 §5.2.1 [gruu-of-either-scheme]
        number = self.number(uri)
        if aor is None or number is None:
            # §5.4 [valid-with-the-aor], §5.3 [public-stays]: no device need be there
            return aor if aor and aor[0] and uri.param("gr") else None
        found = self._owners.get(number)  # §5.4 [instance-is-found]
        return found if found is not None and found[1] == aor[1] else None

    def number(self, uri: Uri) -> str | None:
        """The number of the device of a temporary GRUU, None for any other URI: §5.4."""
        return number_of(self._secret, uri)

    def is_of(self, binding: Binding, uri: Uri) -> bool:
        """Whether a binding is of the device that a GRUU of its user names: §5.4."""
        number = self.number(uri)
        if number is not None:
            return binding.gruu == number
        return binding.instance == (uri.param("gr") or "").lower()

    @property
    def _secret(self) -> bytes:
        if not self._store.secret:
            self._store.secret = self._random(SECRET)
        return self._store.secret


def public_gruu(aor: Uri, instance: str) -> Uri:
    """The public GRUU of a device: §5.4, as §A.1 makes it."""
    return _bare(aor).with_params(gr=instance)  # §5.1 [public-is-made] [public-is-the-aor]


def temporary_gruu(secret: bytes, aor: Uri, number: str, random: Random) -> Uri:
    """A new GRUU of the device with this number, at the domain of its user: §5.1."""
    nonce = random(NONCE)  # §5.1 [never-equal-twice] [unlinkable]
    sealed = nonce + _masked(secret, nonce, bytes.fromhex(number))
    text = base64.urlsafe_b64encode(sealed + _seal(secret, sealed)).decode()
    return _bare(aor).replace(user=PREFIX + text, params=(("gr", None),))


def number_of(secret: bytes, uri: Uri) -> str | None:
    """The number in a temporary GRUU, None if it is not one that was made here: §5.4."""
    user = uri.user or ""
    if not (uri.is_gruu and user.startswith(PREFIX)):
        return None
    try:
        data = base64.b64decode(user[len(PREFIX) :], b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    sealed, seal = data[: NONCE + NUMBER], data[NONCE + NUMBER :]
    if not hmac.compare_digest(_seal(secret, sealed), seal):
        return None
    return _masked(secret, sealed[:NONCE], sealed[NONCE:]).hex()


def without_gruus(contact: Address) -> Address:
    """A contact without the GRUUs that its sender suggests: §5.1."""
    # §5.1 [suggested-public-is-ignored] [suggested-temporary-is-ignored]
    return contact.replace(params=drop(contact.params, PUBLIC, TEMPORARY))


def of_one_number(binding: Binding, new: Binding) -> Binding:
    """A binding with the number that its device now has: §5.1."""
    is_other = binding.instance == new.instance and binding.gruu and binding.gruu != new.gruu
    return replace(binding, gruu=new.gruu) if is_other else binding


def _masked(secret: bytes, nonce: bytes, number: bytes) -> bytes:
    mask = hmac.digest(secret, b"mask" + nonce, "sha256")
    return bytes(a ^ b for a, b in zip(number, mask, strict=False))


def _seal(secret: bytes, sealed: bytes) -> bytes:
    return hmac.digest(secret, b"seal" + sealed, "sha256")[:SEAL]


def _bare(aor: Uri) -> Uri:
    return aor.replace(password=None, params=(), headers=())
