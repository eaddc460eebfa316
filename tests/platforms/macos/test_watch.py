from __future__ import annotations

import os
import select

from stockade.platforms.macos.watch import Watch


def test_one_descriptor_for_several() -> None:
    watch = Watch()
    reader, writer = os.pipe()
    watch.add(reader)
    assert select.select([watch], [], [], 0)[0] == []
    os.write(writer, b"x")
    assert select.select([watch], [], [], 5)[0] == [watch]
    watch.remove(reader)
    assert select.select([watch], [], [], 0)[0] == []
    watch.remove(reader)
    watch.close()
    watch.close()
    watch.remove(reader)
    assert watch.closed
    os.close(reader)
    os.close(writer)
