"""Names of events: operators and kernels are everybody's words and stay; what says where a program lives goes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from stepcrit.slimming import vocabulary as known
from stepcrit.slimming.tokens import Tokens

_TLD = (
    "com|org|net|io|edu|gov|mil|int|internal|local|localdomain|lan|corp|cloud|intra|intranet|home|private|ai|dev|app"
    "|co|de|fr|uk|cn|jp|us|ca|ch|nl|se|in|kr|ru|eu"
)
_PLACES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("address", re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'<>]+")),
    ("address", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")),
    ("address", re.compile(r"(?<![\w.+-])[\w.+-]{2,64}@[A-Za-z][\w-]{1,62}(?![\w<(])")),
    (
        "host name",
        re.compile(  # of version 6: eight groups, or fewer around "::" with a single colon, which no C++ name has
            r"(?<![\w:])(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}"
            r"|(?=[0-9A-Fa-f:]*[0-9A-Fa-f]:[0-9A-Fa-f])(?:[0-9A-Fa-f]{1,4}:){1,6}(?::[0-9A-Fa-f]{1,4}){1,6})(?![\w:])"
        ),
    ),
    (
        "path",
        re.compile(
            r"""(?<![\w/.~])(?:[A-Za-z]:|~|\.{1,2}|/)?(?:/[^\s/;:,()<>|"']+(?: [^\s/;:,()<>|"']+(?=/))?){2,}"""
            r"""|(?<![\w/.~<])[~]?/[A-Za-z_.][\w.-]*|(?<!\w)[A-Za-z]:\\+[^\s"'<>|]+|(?<![\w\\])\\\\[\w.-]+\\[^\s"'<>|]+"""
        ),
    ),
    (
        "path",
        re.compile(  # homes, whatever stands before them, and however the slashes are written
            r"""(?:\$\{?HOME\}?|(?<![\w/.])~[A-Za-z_][\w.-]*|/(?:home|Users))(?:/[^\s/;:,()<>|"']+)+"""
            r"""|%2[Ff](?:[\w.-]+%2[Ff])+[\w.%-]*"""
        ),
    ),
    ("host name", re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")),
    (
        "host name",
        re.compile(
            rf"(?<![\w.:-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_TLD}|INTERNAL|LOCAL|LAN|CORP|COM|NET|ORG)(?![\w(.])"
        ),
    ),
)
_FRAME = re.compile(r"(.*?)(\(\d+\): )(.*)", re.DOTALL)
_INSTALLED = re.compile(r".*/(?=(?:(?:site|dist)-packages|lib/python\d[\d.]*)/)", re.DOTALL)
_LIBRARY = re.compile(
    r"<|(?:site-packages|dist-packages|lib/python\d[\d.]*|torch)/|(?:runpy|threading|contextlib|functools)\.py"
)
_MODULE = "nn.Module: "
_NUMBERED = re.compile(r"(.*?)((?:_\d+)?)", re.DOTALL)

SHORTEST_WORD = 4
"""A header's word of fewer letters is too common to be looked for in names."""

EVERYBODYS = frozenset(
    {
        "aten", "torch", "cuda", "triton", "nccl", "python", "root", "user", "main", "train", "trainer", "none", "null",
        "void", "float", "half", "double", "kernel", "model", "step", "forward", "backward", "optimizer", "autograd",
        "module", "memcpy", "memset", "stream", "device", "default", "localhost", "unknown", "test", "profiler",
    }
)  # fmt: skip
"""Words that tell of nobody, whatever header they stand in: names without them would be other names."""


class Names:
    """Treats the names of one trace, each distinct one once.

    Args:
        tokens: makes the tokens.
        anonymous: replace the user's own names of ranges, files and modules as well.
        told: words of the header that name the host, the user, the job; they are looked for in names.
    """

    def __init__(self, tokens: Tokens, *, anonymous: bool, told: Iterable[str] = ()) -> None:
        self._tokens = tokens
        self._anonymous = anonymous
        words = sorted({word for word in told if _tells(word)}, key=lambda w: (-len(w), w))
        either = "|".join(map(re.escape, words))
        self._told = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])") if words else None

    def operator(self, name: str) -> str:
        """An operator, a kernel, a call: without paths, addresses and hosts."""
        clean = name
        if self._told:
            clean = self._told.sub(lambda m: self._tokens.of(m[0], "word of the header in a name"), clean)
        for what, pattern in _PLACES:
            clean = pattern.sub(partial(self._replaced, what), clean)
        return clean

    def operation(self, name: str) -> str:
        """An operator. Those of old traces hold the user's ranges, which have no namespace."""
        if self._anonymous and not known.TORCH_OPERATOR.search(name):
            return self.range(name)
        return self.operator(name)

    def range(self, name: str) -> str:
        """A range that the user or a library named: as an operator; a token where that is asked for.

        What tells steps, updates and input stays in any case.
        """
        update = known.OPTIMIZER_RANGE.fullmatch(name)
        if update:
            return f"{update[1]}{self._optimizer(update[3])}.{update[4]}"
        if not self._anonymous or known.TORCH_RANGE.fullmatch(name) or known.LOADER_RANGE.fullmatch(name):
            return self.operator(name)
        step = known.STEP_RANGE.fullmatch(name)
        head, own = step.groups() if step else ("", name)
        return head + self._tokens.of(own, "name of a range")

    def step(self, label: str) -> str:
        """What a step is called: as its range is."""
        return label if known.STEP_LABEL.fullmatch(label) else self.range(label)

    def frame(self, name: str) -> str:
        """A Python frame ("path.py(12): function"): installed packages keep their path, other folders go."""
        if name.startswith(_MODULE):
            return _MODULE + self._module(name.removeprefix(_MODULE))
        found = _FRAME.fullmatch(name)
        if not found:
            return name if name.startswith("<built-in ") and not self._anonymous else self._other(name)
        path, is_library = self._path(found[1])
        function = found[3]
        if self._anonymous and not is_library:
            function = self._tokens.of(function, "name of a function")
        return f"{path}{found[2]}{self.operator(function)}"

    def stack(self, text: str) -> str:
        """A call stack: frames, one after another."""
        return ";".join(self.frame(frame) for frame in text.split(";"))

    def hierarchy(self, text: str) -> str:
        """Modules, one in another."""
        return self._tokens.of(text, "name of a module") if self._anonymous else self.operator(text)

    def _replaced(self, what: str, found: re.Match[str]) -> str:
        return self._tokens.of(found[0], f"{what} in a name")

    def _optimizer(self, name: str) -> str:
        return name if known.OPTIMIZER.fullmatch(name) else self._tokens.of(name, "name of an optimizer")

    def _module(self, name: str) -> str:
        if not self._anonymous:
            return self.operator(name)
        parts = _NUMBERED.fullmatch(name)
        return self._tokens.of(parts[1], "name of a module") + parts[2] if parts else name

    def _other(self, name: str) -> str:
        """A frame that is no line of a file: a builtin, or whatever a tool wrote."""
        if self._anonymous and not name.startswith("<built-in "):
            return self._tokens.of(name, "name of a function")
        return self.operator(re.sub(r" at 0x[0-9a-f]+", "", name))

    def _path(self, path: str) -> tuple[str, bool]:
        """A file's path that tells no home, and whether it is an installed one."""
        path = path.replace("\\", "/")
        installed = _INSTALLED.match(path)
        if installed:
            return path[installed.end() :], True
        if _LIBRARY.match(path):
            return path, True
        folder, _, file = path.rpartition("/")
        is_far = path.startswith(("/", "~", "..")) or re.match(r"[A-Za-z]:", path)
        if folder and (is_far or self._anonymous):
            folder = self._tokens.of(folder, "path in a name")
        if self._anonymous:
            file = self._tokens.of(file.removesuffix(".py"), "name of a file") + ".py"
        return f"{folder}/{self.operator(file)}" if folder else self.operator(file), False


def _tells(word: str) -> bool:
    """Whether a word of the header, found in a name, would tell of it."""
    return len(word) >= SHORTEST_WORD and not word.isdigit() and word.lower() not in EVERYBODYS
