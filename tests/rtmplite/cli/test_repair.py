"""`python -m rtmplite repair`, as a user runs it."""

from rtmplite.cli.tool import main
from rtmplite.flv import file, metadata


def test_a_cut_file_is_mended_beside_it(tmp_path, corpus, capsys):
    """The old one stays, a new one is never overwritten."""
    raw = (corpus / "flv" / "seed_320x240_12fps_h264_speex16k_10s.flv").read_bytes()
    broken = tmp_path / "a.flv"
    broken.write_bytes(raw[:100_000])
    assert main(["repair", str(broken)]) == 0
    assert "0 wrong sizes" in capsys.readouterr().out and broken.read_bytes() == raw[:100_000]
    mended = (tmp_path / "a.repaired.flv").read_bytes()
    tags = file.read_flv(mended)[1]
    assert metadata.read(tags[0].data)["filesize"] == len(mended) and len(tags) > 200
    assert main(["repair", str(broken)]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["repair", str(broken), "-o", str(tmp_path / "b.flv")]) == 0
    assert (tmp_path / "b.flv").read_bytes() == mended


def test_what_cannot_be_mended_leaves_nothing(tmp_path, capsys):
    """One line, and no empty file."""
    (tmp_path / "a.flv").write_text("no film")
    assert main(["repair", str(tmp_path / "a.flv")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and len(list(tmp_path.iterdir())) == 1
    assert main(["repair", str(tmp_path / "none.flv")]) == 2
