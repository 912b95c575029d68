"""Bindings in a file: what comes back, what is refused, and what a full disk does."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.homes import BOB, CAROL, HOME, Home, register

from p2psip.errors import LocalError
from p2psip.net.location_sqlite import _SCHEMA, PURGE, SCHEMAS, SLICE, SqliteLocation
from p2psip.net.sqlite_file import RETRY_SECONDS
from p2psip.server.location import Binding
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.strategies.sip import uris
from p2psip.transaction.flow import LOCAL, Flow

AOR = "bob", "home"
ROW = "x'62', x'68', '<sip:b@x>', x'63', 1, 9e9, ?, 1, NULL, 0, x'', ''"
UDP = Flow("UDP", (BOB, 5060), (HOME, 5060))
NOON = 1.8e9


class Clock:
    """Unix time, which a test may set."""

    now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def shop(tmp_path):
    """`shop()` opens the file; what it told is in `shop.told`, what it reads is `shop.clock`."""

    class Shop:
        def __init__(self):
            self.told, self.open, self.clock = [], [], Clock()
            self.path = tmp_path / "location.sqlite"

        def __call__(self, **options):
            made = SqliteLocation(
                self.path,
                lambda *event: self.told.append(event),
                **{"clock": self.clock} | options,
            )
            self.open.append(made)
            return made

        def rows(self):
            with sqlite3.connect(self.path) as db:
                return [text.decode() for (text,) in db.execute("SELECT contact FROM binding")]

    shop = Shop()
    yield shop
    for made in shop.open:
        made.close()


def binding(text=f"<sip:bob@{BOB}>", *, flow=UDP, expires_at=3600.0, **more):
    return Binding(Address.parse(text), flow, "call", 7, expires_at, **more)


def test_what_is_kept_comes_back_in_the_time_of_the_next_process(shop):
    kept = [
        binding(),
        binding(f'"B" <sip:bob@{CAROL};x=1>;q=0.5;+sip.instance="<urn:uuid:1>"',
                flow=Flow("TCP", ("2001:db8::7", 40001), ("2001:db8::1", 5060))),
        binding("<sip:b%ff@far>", proven=Flow("UDP", (CAROL, 5070))),
        binding("<sip:b@later>", is_proven=False, expires_at=60.5),
        binding(reg_id=2, path=Address.parse_list("<sip:a@edge;lr;ob>, \"P\" <sip:b%ff@edge2;lr>")),
    ]  # fmt: skip
    shop().keep(AOR, {AOR: kept}, 0.0)
    shop.clock.now = NOON + 30.0  # another process, whose clock began elsewhere
    came = list(shop().load(1000.0))
    assert [aor for aor, _ in came] == [AOR] * 5
    moved = [970.0 + each.expires_at for each in kept]
    assert [each.expires_at for _, each in came] == pytest.approx(moved)
    assert [replace(back, expires_at=0.0) for _, back in came] == [
        replace(each, expires_at=0.0) for each in kept
    ]


def test_what_has_expired_meanwhile_does_not_come_back(shop):
    shop().keep(AOR, {AOR: [binding(expires_at=60.0), binding(expires_at=90.0)]}, 0.0)
    shop.clock.now += 75.0
    assert [each.expires_at for _, each in shop().load(0.0)] == pytest.approx([15.0])


def test_what_lives_in_this_process_dies_with_it(shop):
    shop().keep(AOR, {AOR: [binding(flow=Flow(LOCAL, (HOME, 5060), (HOME, 5060)))]}, 0.0)
    assert list(shop().load(0.0)) == []


def test_a_change_replaces_what_was_kept_of_that_user_alone(shop):
    store, eve = shop(), ("eve", "home")
    known = {AOR: [binding()], eve: [binding(f"<sip:eve@{CAROL}>")]}
    for aor in known:
        store.keep(aor, known, 0.0)
    known[AOR] = [binding(f"<sip:bob@{CAROL}>")]
    store.keep(AOR, known, 1.0)
    assert sorted(shop.rows()) == [f"<sip:bob@{CAROL}>", f"<sip:eve@{CAROL}>"]
    del known[eve]
    store.keep(eve, known, 2.0)
    assert shop.rows() == [f"<sip:bob@{CAROL}>"]


def test_what_nobody_refreshes_is_removed_with_the_next_changes(shop):
    store = shop()
    for number in range(3 * PURGE):
        aor = f"u{number}", "home"
        store.keep(aor, {aor: [binding(expires_at=60.0)]}, 0.0)
    shop.clock.now += 61.0
    for number in range(3):
        assert len(shop.rows()) == (3 - number) * PURGE + (number > 0)
        store.keep(AOR, {AOR: [binding()]}, 61.0)
    assert len(shop.rows()) == 1


@given(contact=uris(), user=st.text(min_size=1), call=st.text(), cseq=st.integers(1, 2**31 - 1))
def test_any_contact_comes_back(contact, user, call, cseq):
    with TemporaryDirectory() as folder:
        store = SqliteLocation(Path(folder) / "phones", print, clock=lambda: NOON)
        kept = Binding(Address(contact), UDP, call, cseq, 60.0)
        aor = user, "home"
        if any("\ud800" <= letter <= "\udfff" for letter in user + call):
            return
        store.keep(aor, {aor: [kept]}, 0.0)
        [(found, came)] = store.load(0.0)
        assert found == aor and str(came.contact) == str(kept.contact) and came.call_id == call
        store.close()


# What the file is


def test_a_file_of_the_version_before_is_read_and_gets_the_new_columns(shop):
    with sqlite3.connect(shop.path) as db:
        for statement in _SCHEMA.split(";")[:-1]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        values = ROW.removesuffix(", 0, x'', ''")
        db.execute(f"INSERT INTO binding VALUES ({values})", ("UDP 10.0.0.3 5060",))
    db.close()
    assert [(each.reg_id, each.path) for _, each in shop().load(0.0)] == [(0, ())]
    shop().keep(AOR, {AOR: [binding(reg_id=1)]}, 0.0)
    assert [each.reg_id for _, each in shop().load(0.0) if each.reg_id] == [1]


def test_the_key_of_temporary_gruus_is_in_the_file(shop):
    """Covers RFC 5627 §5.4: with the number of each device."""
    first = shop()
    first.keep(AOR, {AOR: [binding(gruu="00ff" * 4)]}, 0.0)
    first.close()
    second = shop()
    assert first.secret == second.secret and len(first.secret) == 32
    assert [each.gruu for _, each in second.load(0.0)] == ["00ff" * 4]
    second.close()
    with sqlite3.connect(shop.path) as db:
        db.execute("DROP TABLE secret")
        db.execute("ALTER TABLE binding DROP COLUMN gruu")
        db.execute("PRAGMA user_version = 2")
    db.close()
    assert shop().secret not in (b"", first.secret)  # of the version before: it gets one
    assert [each.gruu for _, each in shop().load(0.0)] == [""]


@pytest.mark.parametrize("existing", [False, True])
def test_no_other_user_of_the_machine_reads_it(shop, existing):
    """Own design: it tells where everybody's phones are, and has the key of their GRUUs."""
    before = os.umask(0o022)
    try:
        if existing:  # by an earlier version, which was killed
            with closing(sqlite3.connect(shop.path)) as db:
                db.executescript(f"PRAGMA journal_mode = WAL; {_SCHEMA} PRAGMA user_version = 1")
                shop().keep(AOR, {AOR: [binding()]}, 0.0)
        else:
            shop().keep(AOR, {AOR: [binding()]}, 0.0)
        files = shop.path.parent.glob("location.sqlite*")
        modes = {each.name: each.stat().st_mode & 0o777 for each in files}
    finally:
        os.umask(before)
    assert len(modes) == 3 and set(modes.values()) == {0o600} and not shop.told


@pytest.mark.parametrize("version", [len(SCHEMAS) + 1, -1, 0])
def test_a_file_of_a_later_version_or_of_others_is_refused_and_not_touched(shop, version):
    with sqlite3.connect(shop.path) as db:
        db.execute("CREATE TABLE precious (x)")
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = shop.path.read_bytes()
    with pytest.raises(LocalError, match=rf"location\.sqlite: schema {version}"):
        shop()
    assert shop.path.read_bytes() == before and shop.told == []


@pytest.mark.parametrize("damage", ["text", "middle"])
def test_a_damaged_file_is_set_aside(shop, damage):
    store = shop()
    for number in range(200):
        aor = f"u{number}", "home"
        store.keep(aor, {aor: [binding()]}, 0.0)
    store.close()
    data = bytearray(shop.path.read_bytes())
    if damage == "text":
        data[:] = b"no database at all" * 1000
    else:
        data[4096:20480] = b"\xff" * 16384
    shop.path.write_bytes(data)
    store = shop()
    assert [what for what, _ in shop.told] == ["state-set-aside"]
    assert list(store.load(0.0)) == []
    store.keep(AOR, {AOR: [binding()]}, 0.0)
    assert len(list(shop().load(0.0))) == 1
    assert shop.path.with_suffix(".damaged").read_bytes() == data


def test_a_row_that_is_no_binding_is_passed_over(shop):
    store = shop()
    store.keep(AOR, {AOR: [binding()]}, 0.0)
    with sqlite3.connect(shop.path) as db:
        for source in ("UDP", "UDP x y", "UDP 192.0.2.1 5060 z"):
            db.execute(
                f"INSERT INTO binding VALUES ({ROW})",
                (source,),
            )
        db.execute("UPDATE binding SET contact = x'3c' WHERE rowid = 2")
    assert len(list(store.load(0.0))) == 1


# When it cannot be written


def fill(shop, users, **options):
    """A store that has no more room, and what should be in it."""
    store, known = shop(max_pages=12, **options), {}
    for number in range(users):
        aor = f"u{number}", "home"
        known[aor] = [binding(f"<sip:u{number}@{BOB};x={'y' * 500}>")]
        store.keep(aor, known, 0.0)
    return store, known


def test_a_full_disk_is_said_once_and_what_it_missed_is_written_later(shop):
    store, known = fill(shop, 3 * SLICE)
    assert [what for what, _ in shop.told] == ["state-unwritable"] and "full" in shop.told[0][1]
    store._max_pages = 10_000  # somebody has made room
    store.keep(AOR, known | {AOR: [binding()]}, RETRY_SECONDS / 2)
    assert len(shop.told) == 1
    known[AOR] = [binding()]
    for number in range(4):
        store.keep(AOR, known, RETRY_SECONDS + number)
    assert [what for what, _ in shop.told] == ["state-unwritable", "state-written"]
    assert len(shop.rows()) == 3 * SLICE + 1 == len(set(shop.rows()))


def test_a_disk_that_stays_full_is_tried_now_and_then(shop, monkeypatch):
    store, known = fill(shop, 100)
    tried = []
    monkeypatch.setattr(store, "_open", lambda: tried.append(1) or sqlite3.connect("/nowhere/x"))
    for second in range(300):
        store.keep(AOR, known, float(second))
    assert len(tried) == 300 // RETRY_SECONDS - 1 and len(shop.told) == 1


def test_a_folder_that_is_gone_does_not_stop_the_registrar(tmp_path):
    told = []
    store = SqliteLocation(tmp_path / "no" / "location.sqlite", lambda *event: told.append(event))
    home = Home(store=store)
    home.registrar.restore(0.0)
    for cseq in (1, 2):
        home.hear(register(cseq=cseq), now=float(cseq))
    assert len(home.registrar.bindings(Uri.parse("sip:bob@home"), 2.0)) == 1
    assert [what for what, _ in told] == ["state-unwritable"]
    (tmp_path / "no").mkdir()
    home.hear(register(cseq=3), now=60.0)
    assert [what for what, _ in told] == ["state-unwritable", "state-written"]
    store.close()


def test_two_writers_do_not_wait_for_each_other(shop):
    """A tool that holds the file for a while costs no call anything."""
    store = shop()
    with sqlite3.connect(shop.path) as db:
        db.execute("BEGIN IMMEDIATE")
        store.keep(AOR, {AOR: [binding()]}, 0.0)
        assert [what for what, _ in shop.told] == ["state-unwritable"]
    db.close()
    store.keep(AOR, {AOR: [binding()]}, RETRY_SECONDS)
    assert len(shop.rows()) == 1


def test_the_200_leaves_after_the_commit(shop):
    """Covers RFC 3261 §10.3 step 8: what was confirmed is there, whatever comes next."""
    home = Home(store=shop())
    taken = []
    keep = home.registrar._location.keep

    def kept(*arguments):
        keep(*arguments)
        taken.append((len(shop.rows()), len(home.stack._outbox.orders)))

    home.registrar._location.keep = kept
    home.hear(register())
    assert taken == [(1, 0)]
