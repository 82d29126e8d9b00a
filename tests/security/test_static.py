"""Opening a trace never runs code, opens a connection or prints unguarded: read off the source itself.

Each rule has an example that it must find, so that a rule which no longer looks is found, too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepcrit.cli.main import COMMANDS, program

ROOT = Path(__file__).parents[2]
PACKAGE, SCRIPTS = sorted((ROOT / "stepcrit").rglob("*.py")), sorted((ROOT / "scripts").rglob("*.py"))

UNPACKING = {
    "pickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "dbm",
    "yaml",
    "ruamel",
    "jsonpickle",
}
RUNNING = {
    "subprocess",
    "multiprocessing",
    "ctypes",
    "cffi",
    "code",
    "codeop",
    "runpy",
    "pty",
    "asyncio",
    "concurrent",
}
CALLING = {
    "socket", "socketserver", "ssl", "urllib", "urllib3", "http", "requests", "httpx", "aiohttp", "fsspec", "ftplib",
    "smtplib", "telnetlib", "xmlrpc", "webbrowser", "wsgiref",
}  # fmt: skip
SPEAKING = {"logging", "warnings"}
EVALUATED = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
METHODS = {
    "system", "popen", "startfile", "import_module", "mktemp", "read_pickle", "to_pickle", "extractall", "unpack_archive",
    "literal_eval", "run_path", "run_module", "load_module", "exec_module", "fork", "forkpty",
}  # fmt: skip
"""Calls `anything.name(…)` that run, load, unpack or name insecurely."""
PREFIXES = ("exec", "spawn", "posix_spawn")
"""Of `os.…`."""

DOORS = {"stepcrit/cli/output.py", "stepcrit/cli/main.py"}
"""Who may touch sys.stdout and sys.stderr: the one writes, the other puts it in their place."""
PRINTER = "stepcrit/report/screen.py"
"""Who may make a rich console: without markup, highlighting and emoji."""

GIT = "stepcrit/ingest/gitrun.py"
"""Who may start a program: git, found by its absolute path, with a list of arguments and none of its hooks."""

LAZY = "stepcrit/__init__.py"
VERBS = "stepcrit/cli/main.py"
"""Who may import by name: the face of the library, from a table of its own, and the door, a verb's own file."""

Rule = Callable[[ast.AST, str], bool]


def called(node: ast.AST) -> str:
    """The last part of what is called: "system" of `os.system(…)`."""
    target = node.func if isinstance(node, ast.Call) else None
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def is_attribute_of(node: ast.AST, owner: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner


def imported(node: ast.AST) -> set[str]:
    """The packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return {(node.module or "").partition(".")[0]}
    return set()


def keyword(node: ast.AST, name: str) -> ast.expr | None:
    return (
        next((k.value for k in node.keywords if k.arg == name), None) if isinstance(node, ast.Call) else None
    )


def is_on(node: ast.AST, name: str) -> bool:
    """Whether a call says `name=` anything but False."""
    value = keyword(node, name)
    return value is not None and not (isinstance(value, ast.Constant) and value.value is False)


def runs_text(node: ast.AST, _: str) -> bool:
    """`eval(x)`, or the name handed on; `re.compile` is another compile."""
    return isinstance(node, ast.Name) and node.id in EVALUATED and not isinstance(node.ctx, ast.Store)


def calls_out(node: ast.AST, where: str) -> bool:
    if where in (LAZY, VERBS) and called(node) == "import_module":
        return False
    return called(node) in METHODS or (
        isinstance(node, ast.Attribute) and is_attribute_of(node, "os") and node.attr.startswith(PREFIXES)
    )


def takes_apart(node: ast.AST, _: str) -> bool:
    return bool(imported(node) & UNPACKING)


def starts_something(node: ast.AST, where: str) -> bool:
    """The baseline of a check lies in git, which only git can read; so one file may start git, and git alone."""
    return bool(imported(node) & (RUNNING - {"subprocess"} if where == GIT else RUNNING))


def opens_a_connection(node: ast.AST, _: str) -> bool:
    return bool(imported(node) & CALLING)


def imports_by_name(node: ast.AST, where: str) -> bool:
    """Only what comes with the package and what is installed may be looked up: `importlib.resources`, `.metadata`."""
    if isinstance(node, ast.Import):
        return any(alias.name == "importlib" for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module == "importlib":
        allowed = ("resources", "metadata", *(["import_module"] if where in (LAZY, VERBS) else []))
        return any(alias.name not in allowed for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
        ("importlib.util", "importlib.machinery")
    )


def asks_a_shell(node: ast.AST, _: str) -> bool:
    return is_on(node, "shell")


def allows_pickles(node: ast.AST, _: str) -> bool:
    return is_on(node, "allow_pickle") or (
        called(node) == "load" and isinstance(node, ast.Call) and is_attribute_of(node.func, "np")
    )


def asserts(node: ast.AST, _: str) -> bool:
    """`python -O` takes it out: what guards input must be an `if`, what we promise an InternalError."""
    return isinstance(node, ast.Assert)


def prints(node: ast.AST, where: str) -> bool:
    """Words leave by cli/output.py alone, where they are made harmless."""
    if called(node) in ("print", "echo", "secho", "print_json", "pprint") and where != PRINTER:
        return True
    if bool(imported(node) & SPEAKING):
        return True
    return where not in DOORS and is_attribute_of(node, "sys") and node.attr in (  # type: ignore[attr-defined]
        "stdout", "stderr", "__stdout__", "__stderr__",
    )  # fmt: skip


def marks_up(node: ast.AST, where: str) -> bool:
    """Rich never reads a name as markup: consoles that print say so, and no text is made from markup."""
    if (
        called(node) in ("from_markup", "from_ansi", "render_markup")
        or is_on(node, "markup")
        or is_on(node, "emoji")
    ):
        return True
    if called(node) == "Console":
        prints_to = keyword(node, "color_system")
        return where != PRINTER or (prints_to is not None and not _is_plain(node))
    return False


def _is_plain(node: ast.AST) -> bool:
    names = ("markup", "highlight", "emoji")
    return all(isinstance(keyword(node, name), ast.Constant) and not is_on(node, name) for name in names)


def catches_all(node: ast.AST, where: str) -> bool:
    """The last door catches everything, and the judge of the fuzzer, and a thread for who waits; who tidies up raises again."""
    if not isinstance(node, ast.ExceptHandler) or where in (
        "stepcrit/cli/main.py",
        "stepcrit/ingest/ahead.py",
        "scripts/fuzzing/judge.py",
    ):
        return False
    if isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None:
        return False
    return node.type is None or (
        isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
    )


EVERYWHERE: tuple[Rule, ...] = (
    runs_text, calls_out, takes_apart, imports_by_name, asks_a_shell, allows_pickles, catches_all,
)  # fmt: skip
IN_PACKAGE: tuple[Rule, ...] = (*EVERYWHERE, starts_something, opens_a_connection, asserts, prints, marks_up)

BAD: tuple[tuple[Rule, str], ...] = (
    (runs_text, "eval(row['Concrete Inputs'])"), (runs_text, "exec(x)"), (runs_text, "compile(x, '', 'exec')"),
    (runs_text, "__import__(name)"), (runs_text, "run = map(eval, words)"),
    (calls_out, "os.system(x)"), (calls_out, "os.popen(x)"), (calls_out, "os.execv(a, b)"), (calls_out, "os.posix_spawn(a)"),
    (calls_out, "tempfile.mktemp()"), (calls_out, "tar.extractall('/tmp')"), (calls_out, "pd.read_pickle(x)"),
    (calls_out, "importlib.import_module(x)"), (calls_out, "from os import system\nsystem(x)"),
    (takes_apart, "import pickle"), (takes_apart, "from marshal import loads"), (takes_apart, "import shelve, os"),
    (takes_apart, "def f():\n    import yaml"),
    (starts_something, "import subprocess"), (starts_something, "from multiprocessing import Pool"),
    (opens_a_connection, "import socket"), (opens_a_connection, "from urllib.request import urlopen"),
    (opens_a_connection, "import http.client"), (opens_a_connection, "import requests"),
    (imports_by_name, "import importlib"), (imports_by_name, "from importlib import import_module"),
    (imports_by_name, "from importlib.util import find_spec"),
    (asks_a_shell, "run(x, shell=True)"), (asks_a_shell, "run(x, shell=is_shell)"),
    (allows_pickles, "np.load(x)"), (allows_pickles, "numpy.lib.load(x, allow_pickle=True)"),
    (asserts, "assert trace.rows"),
    (prints, "print(name)"), (prints, "typer.echo(f'{name}')"), (prints, "sys.stdout.write(name)"),
    (prints, "file = sys.stderr"), (prints, "import logging"), (prints, "from warnings import warn"),
    (marks_up, "Text.from_markup(name)"), (marks_up, "Console(markup=True)"), (marks_up, "Console()"),
    (catches_all, "try: f()\nexcept Exception: pass"), (catches_all, "try: f()\nexcept: pass"),
)  # fmt: skip

GOOD = (
    "re.compile(x)", "regex.compile(x)", "run(x, shell=False)", "from importlib import resources", "json.loads(x)",
    "self.load(x)", "np.savez(x)", "try: f()\nexcept OSError: pass", "raise InternalError(x)",
    "try: f()\nexcept BaseException:\n  g()\n  raise",
)  # fmt: skip


def found(rules: tuple[Rule, ...], source: str, where: str) -> Iterator[str]:
    """What breaks a rule, by line."""
    for node in ast.walk(ast.parse(source)):
        for rule in rules:
            if rule(node, where):
                yield f"{where}:{getattr(node, 'lineno', 0)}: {rule.__name__}"


@pytest.mark.parametrize(("rule", "source"), BAD, ids=[source for _, source in BAD])
def test_each_rule_finds_its_example(rule: Rule, source: str) -> None:
    assert list(found((rule,), source, "stepcrit/x.py"))


@pytest.mark.parametrize("source", GOOD)
def test_no_rule_finds_what_is_harmless(source: str) -> None:
    assert list(found(IN_PACKAGE, source, "stepcrit/x.py")) == []


def test_every_rule_has_an_example() -> None:
    assert {rule for rule, _ in BAD} == set(IN_PACKAGE)


def test_a_printing_console_reads_no_markup() -> None:
    loud = "Console(file=out, color_system='standard', markup=False, highlight=False)"
    assert list(found((marks_up,), loud, PRINTER))
    assert not list(found((marks_up,), loud[:-1] + ", emoji=False)", PRINTER))


def test_the_door_imports_only_files_beside_it() -> None:
    calls = [
        n for n in ast.walk(ast.parse((ROOT / VERBS).read_text("utf-8"))) if called(n) == "import_module"
    ]
    assert [ast.unparse(call) for call in calls] == ["import_module(f'stepcrit.cli.{verb}')"]
    with pytest.raises(ModuleNotFoundError, match=r"stepcrit\.cli\.os"):
        program(["os"])
    assert set(COMMANDS) <= {path.stem for path in (ROOT / VERBS).parent.glob("*.py")}


def test_the_library_imports_only_what_its_own_table_names() -> None:
    tree = ast.parse((ROOT / LAZY).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if called(node) == "import_module"]
    assert [ast.unparse(call) for call in calls] == ["import_module(_HOMES[name])"]
    table = next(
        n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "_HOMES"
    )
    assert all(home.startswith("stepcrit.") for home in ast.literal_eval(table).values())


def test_the_one_program_that_is_started_is_git_with_a_list_of_arguments() -> None:
    tree = ast.parse((ROOT / GIT).read_text(encoding="utf-8"))
    uses = [node for node in ast.walk(tree) if is_attribute_of(node, "subprocess")]
    assert sorted({node.attr for node in uses}) == ["DEVNULL", "TimeoutExpired", "run"]  # type: ignore[attr-defined]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.func in uses]
    assert [ast.unparse(call.args[0]) for call in calls] == ["[*command, *words]"]
    assert ast.unparse(tree).count("command = [_program(), ") == 1
    assert [ast.unparse(n) for n in ast.walk(tree) if called(n) == "which"] == [
        "shutil.which('git', path=os.pathsep.join(folders))"
    ]


def test_only_the_file_for_git_may_start_anything() -> None:
    assert not list(found((starts_something,), "import subprocess", GIT))
    assert list(found((starts_something,), "import multiprocessing", GIT))


def test_the_package_breaks_no_rule() -> None:
    assert len(PACKAGE) > 100
    assert _broken(PACKAGE, IN_PACKAGE) == []


def test_the_middle_takes_structs_of_msgspec_and_nothing_that_reads() -> None:
    middle = ("answers", "analyses", "graph", "link", "model", "intervals.py", "units.py")
    files = [p for p in PACKAGE if Path(p).relative_to(ROOT / "stepcrit").parts[0] in middle]
    assert len(files) > 100
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    taken = {
        ast.unparse(n)
        for n in nodes
        if isinstance(n, ast.Import | ast.ImportFrom) and "msgspec" in ast.unparse(n)
    }
    assert taken <= {
        "from msgspec import Struct",
        "from msgspec import Struct, field",
        "from msgspec.structs import replace",
    }


def test_scripts_neither_evaluate_nor_unpack() -> None:
    assert len(SCRIPTS) > 10
    assert _broken(SCRIPTS, EVERYWHERE) == []


def _broken(paths: list[Path], rules: tuple[Rule, ...]) -> list[str]:
    return [
        one
        for path in paths
        for one in found(rules, path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]
