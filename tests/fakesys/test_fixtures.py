from numaproof import fixtures


def test_data_files_are_found_by_their_names() -> None:
    found = fixtures.machine_files()
    assert list(found) == sorted(found)
    assert found["raspberry-pi-4"].read_text(encoding="utf-8").startswith("name: raspberry-pi-4\n")
