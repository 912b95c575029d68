"""A section is found whichever way somebody types it, and requirements by their words."""

import pytest

from rfc_annotations import lookup, specs
from rfc_annotations.__main__ import main

TOOL = specs.Path(specs.__file__).parent


@pytest.fixture(scope="module")
def known():
    listed = specs.load(TOOL / "specs.toml")
    return listed, specs.read_index(listed, TOOL / "index")


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("rfc3261 16.6", ("RFC 3261", "16.6")),
        ("RFC 3261 §17.1.1.2 [timer-a-doubles]", ("RFC 3261", "17.1.1.2")),
        ("rfc 3261 section 16.6.", ("RFC 3261", "16.6")),
        ("3261 16.6", ("RFC 3261", "16.6")),
        ("rfc-3261 Request Forwarding", ("RFC 3261", "16.6")),
        ("RTMP 5.3.1.3", ("RTMP 1.0", "5.3.1.3")),
        ("rtmp 1.0 5.3.1.3", ("RTMP 1.0", "5.3.1.3")),
        ("flv e.4.3.1", ("FLV 10.1", "E.4.3.1")),
        ("FLV annex E.4.3.1", ("FLV 10.1", "E.4.3.1")),
        ("amf0 2.10", ("AMF0", "2.10")),
        ("ertmp v2 enhanced video", ("E-RTMP v2", "Enhanced Video")),
        ('E-RTMP v2 §"Enhanced Video"', ("E-RTMP v2", "Enhanced Video")),
        ("field digest handshake", ("Field", "Digest handshake")),
    ],
)
def test_a_section_may_be_typed_in_a_hurry(known, typed, place):
    assert lookup.find_section(typed, *known).places == (place,)


def test_what_may_mean_several_gives_all_of_them(known):
    assert len(lookup.find_section("rfc3261 transaction", *known).places) > 1


@pytest.fixture
def run(repo, capsys):
    def run(command, *arguments):
        options = ["--root", str(repo.root), "--specs", str(repo.root / "specs")]
        code = main([command, *options, *arguments])
        done = capsys.readouterr()
        return code, done.out.splitlines() or done.err.splitlines()

    return run


def test_show_takes_words_without_quotes(run):
    code, lines = run("show", "rfc7001", "2")
    assert code == 0 and lines[0] == "RFC 7001 §2  Waiting"
    assert "catalogued: all of its 1 normative sentences" in lines
    assert run("show", "7001", "waiting") == (code, lines)


def test_show_says_what_is_not_catalogued(run, repo):
    assert "not catalogued: none of its 1 normative sentences" in run("show", "rfc7001 1")[1]
    repo.replace("specs/rfc7001.txt", "four minutes.", "four minutes.  It MUST NOT boil.")
    assert "not catalogued: 1 of its 2 normative sentences" in run("show", "rfc7001 2")[1]


def test_show_without_a_copy_goes_by_the_committed_numbers(repo, capsys, monkeypatch):
    monkeypatch.delenv("RFC_SPECS", raising=False)
    assert main(["show", "--root", str(repo.root), "rfc7001 1"]) == 0
    said = "not catalogued: none of its 1 normative sentences (unverified: no local copy)"
    assert said in capsys.readouterr().out


def test_show_names_the_neighbours_of_a_section_that_is_not_there(run):
    assert run("show", "rfc7001 1.7") == (1, ["there is no RFC 7001 §1.7; there is 1, 1.1"])
    assert run("show", "rfc7001") == (1, ["RFC 7001 has 3 sections; say which one"])
    assert run("show", "7001", "ing") == (1, ["which one? RFC 7001 §1, RFC 7001 §2"])


def test_show_reads_only_the_files_that_may_cite_the_section(repo):
    project = repo.project()
    everything = len(project.scanned)
    repo.write("src/tea/cup.py", '"""A cup.  Implements RFC 7001 §1.1."""\n')
    project = repo.project()
    project.narrow("RFC 7001", "1.1")
    assert [scanned.file for scanned in project.scanned] == ["src/tea/cup.py"]
    assert len(repo.project().scanned) == everything + 1
    assert set(project.catalogue.requirements) == {("RFC 7001", "2", "waits")}
    project = repo.project()
    project.narrow("Field", "Old kettles")
    assert not project.catalogue.requirements


def test_find_searches_the_catalogue_and_the_titles(run):
    waits = "RFC 7001 §2 [waits]  MUST, host: Four minutes, by the clock."
    assert run("find", "minutes", "CLOCK") == (0, [waits])
    assert run("find", "waiting clock") == (0, [waits])
    assert run("find", "milk") == (0, ["RFC 7001 §1.1  Milk  (not catalogued)"])
    assert run("find", "coffee") == (1, ["neither the catalogue nor a title has 'coffee'"])


def test_find_takes_the_beginnings_of_words(run):
    waits = "RFC 7001 §2 [waits]  MUST, host: Four minutes, by the clock."
    assert run("find", "minu") == (0, [waits])
    assert run("find", "lock")[0] == 1


def test_find_takes_the_name_of_a_spec_as_people_type_it(run):
    assert len(run("find", "rfc7001")[1]) == 3
    assert run("find", "rfc7001", "milk") == (0, ["RFC 7001 §1.1  Milk  (not catalogued)"])


def test_find_puts_names_first(run, repo):
    toml = "rfc_annotations/requirements/rfc7001.toml"
    entry = (repo.root / toml).read_text().partition("\n")[2].replace("waits", "by-the-clock")
    repo.write(toml, (repo.root / toml).read_text() + entry)
    assert "[by-the-clock]" in run("find", "clock")[1][0]
    assert "[by-the-clock]" in run("find", "rfc7001", "clock")[1][0]
    assert "[waits]" in run("find", "minutes")[1][0]


def test_a_spec_may_have_a_long_name():
    name = "Tea over Avian Carriers"
    found = lookup.find_section(f"{name} 2.1", {name: specs.Spec(name, "")}, {name: {"2.1": ""}})
    assert found.places == ((name, "2.1"),)
