"""The identity of the data: a file, a folder or a glob."""

import hashlib

from equipoise.data.fingerprint import fingerprint


def test_a_file_has_name_size_and_digest(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"x,y\n1,2\n")
    assert fingerprint(str(file)) == [
        {"name": "a.csv", "bytes": 8, "sha256": hashlib.sha256(b"x,y\n1,2\n").hexdigest()}
    ]


def test_folders_and_globs_list_their_files_in_order(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.txt"):
        (tmp_path / name).write_bytes(name.encode())
    names = ["a.parquet", "b.parquet"]
    assert [file["name"] for file in fingerprint(str(tmp_path))] == names
    assert [file["name"] for file in fingerprint(str(tmp_path / "*.parquet"))] == names
