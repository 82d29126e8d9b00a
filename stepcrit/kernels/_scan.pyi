from collections.abc import Callable

REVISION: int

class Scanner:
    def scan(
        self, text: bytes, start: int, end: int, tell: Callable[[int, bytes], int], /
    ) -> dict[str, bytes | int] | None: ...
    def size(self) -> int: ...
