"""Libraries that a running program loads late share about 1,500 bytes of static thread storage; a library that wants more cannot be loaded."""
import pathlib
import struct

import lanescope
import pytest

ROOM = 256  # bytes; loaders keep some 1,500 for all libraries of a program, torch's among them
PT_TLS = 7


def thread_storage(path):
    """Bytes of the library's segment of thread-local storage."""
    image = path.read_bytes()
    assert image[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit ELF file"
    headers, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for i in range(count):
        kind, *_, in_memory, _ = struct.unpack_from("<IIQQQQQQ", image, headers + i * size)
        if kind == PT_TLS:
            return in_memory
    return 0


@pytest.mark.parametrize("library", sorted(pathlib.Path(lanescope.__file__).parent.rglob("*.so")), ids=lambda path: path.name)
def test_a_library_needs_little_static_thread_storage(library):
    assert thread_storage(library) <= ROOM
