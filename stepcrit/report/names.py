"""Long C++ kernel names made short for people; what tells them apart is kept.

A templated kernel is one name of a thousand characters in which five matter: what it is, and which
functor it applies to which type. The full name is always in the machine formats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from rich.cells import cell_len

from stepcrit.model.section import Sentence, Unit
from stepcrit.report.safe import safe_text

_LONGEST = 4000  # characters that are looked at; the rest of a hostile name would only cost time
_DEEPEST = 12  # nested templates that are looked into
_FRAME = re.compile(r"^(?P<path>.*\.pyx?\(\d+\): .*)$")
_EVALUATE = "autograd::engine::evaluate_function: "
_TENSILE = re.compile(r"(Cijk_A\w{3}_B\w{3}_[A-Z]+_).*?(MT\d+x\d+x\d+_MI[\dx]+)_")
_ADDRESS = re.compile(r" (object )?at 0x[0-9a-fA-F]+")
_ANONYMOUS = re.compile(r"(\(anonymous namespace\)|<unnamed>|\(anonymous\)|_GLOBAL__N_\w*)::")
_CALL = re.compile(r"::operator\(\)(\([^()]*\))?( const)?")
_CONST = re.compile(r"\b(const|volatile)\b")
_SILENT = re.compile(
    r"^(at|native|cuda|hip|detail|std|__1|c10|thrust|THCUNN|torch|autograd|engine|internal|impl"
    r"|ROCPRIM_\w+|dev|device|kernel|thread|threadblock|tensor_operation)$"
)
_VAGUE = frozenset({"kernel", "Kernel", "Kernel2", "run", "type", "kentry", "Params", "launch"})
_SCALAR = re.compile(
    r"^(void|bool|char|short|int|long|float|double|half|unsigned|signed|long long|size_t|u?int\d+(_t)?"
    r"|unsigned (char|short|int|long|long long)|__half2?|__(nv|hip)_bfloat162?|bfloat16_t|half_t|tfloat32_t"
    r"|BFloat16|Half|Float8_\w+|float\d|double\d|int\d|complex<\w+>)[ *&]*$"
)
_NOISE = re.compile(
    r"^(Array|array|pair|tuple|Tuple|complex|OpaqueType|TensorIterator(Base)?|(Trivial)?OffsetCalculator|Scalar"
    r"|(Load|Store)With(out)?Cast|TensorList\w*Metadata|RestrictPtrTraits|integral_constant|CUDAGeneratorImpl|decltype.*"
    r"|\w*Policy\w*|policy_hub|RowMajor|ColumnMajor|PassThrough|cublas\w+(Params\w*|StridedBatched))[ *&]*$"
)
_WRAPPER = re.compile(
    r"^(gpu_kernel\w*|gpu_index_kernel|\w*launcher|[AB]?UnaryFunctor|BinaryFunctor|ReduceOp|func_wrapper_t|apply"
    r"|kernel|Kernel2?|kentry)$"
)
_CARRIER = re.compile(r"elementwise|reduce_kernel|multi_tensor_apply|gpu_kernel")
_BRACKET = re.compile(r"[<({\[)}\]]|(?<!-)>")  # the arrow's `>` closes nothing
_CUTS = {at: re.compile(f"{at}|{_BRACKET.pattern}") for at in ("::", ",", " ")}
_LITERAL = re.compile(r"^(true|false|nullptr|-?\d+(u?l{0,2})?|\([^()]*\)-?\d+)$")


class _Type(Struct, frozen=True):
    """One C++ name taken apart: `space::base<args>`."""

    base: str
    space: str
    args: tuple[str, ...]


def short_name(name: str, width: int) -> str:
    """A name that fits in `width` cells and still says what it is.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    ...            "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)", 60)
    'vectorized_elementwise_kernel<CUDAFunctor_add<float>>'
    >>> short_name("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn", 40)
    'ampere_fp16_s16816gemm_f…_stages_32x6_tn'
    """
    forms = _readable(name[:_LONGEST])
    fitting = next((form for form in forms if cell_len(form) <= width), None)
    return _cut(forms[-1], width) if fitting is None else fitting


def short_names(names: Sequence[str], width: int) -> list[str]:
    """`short_name` of each; different names that would look the same are numbered: "x", "x #2".

    >>> short_names(["void f<int>(int)", "void f<int>(long)", "void f<int>(int)"], 20)
    ['f<int>', 'f<int> #2', 'f<int>']
    """
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in labels:
            continue
        label, n = short_name(name, width), 1
        while label in taken:
            n += 1
            mark = f" #{n}"
            label = short_name(name, max(width - len(mark), 1)) + mark
        labels[name] = label
        taken.add(label)
    return [labels[name] for name in names]


def labels_in(sentence: Sentence, width: int) -> dict[str, str]:
    """What the names in a sentence are called there: short, and different ones differently."""
    raws = [str(value.raw) for value in sentence.values if value.unit == Unit.NAME and value.raw is not None]
    return dict(zip(raws, short_names(raws, width), strict=True))


@lru_cache(maxsize=1024)  # one document tells of a name in several places
def _readable(name: str) -> tuple[str, ...]:
    """Short forms of a name of bounded length, before they are cut to a width, the fullest first."""
    text = safe_text(name)
    if _FRAME.match(text) or text.startswith("<"):
        return (_ADDRESS.sub("", text),)
    if text.startswith(_EVALUATE):
        inner = _readable(text.removeprefix(_EVALUATE).removeprefix("struct "))
        return (f"{_EVALUATE.rpartition('::')[2]}{inner[0]}",)
    if text.startswith("_ZN"):
        return (_demangled(text) or text,)
    if tensile := _TENSILE.match(text):
        return (f"{tensile[1]}…{tensile[2]}…",)
    return _kernel(_CONST.sub("", _CALL.sub("", _ANONYMOUS.sub("", text)))) if _is_cpp(text) else (text,)


def _is_cpp(text: str) -> bool:
    """Whether a name is a C++ function: a return type, a template, or scopes with an argument list."""
    if text.startswith("void "):
        return True
    head = re.match(r"[\w:~ ]+(?=[<({])", text)
    if head is None or text.startswith(("aten::", "c10d::", "autograd::engine::")):
        return False
    # "forward(batch 3)" is somebody's annotation, and what is in brackets may matter
    return "::" in head[0] or (text.endswith(")") and re.search(r"[*<&]|::|\w, \w", text) is not None)


def _kernel(text: str) -> tuple[str, ...]:
    """Function name with what it was instantiated for; where that is all that matters, also alone."""
    kind = _take(_last_word(text))
    inner = _innermost(kind, 0)
    if inner is None:
        return (_leaf(kind) or text,)
    leaf = _leaf(inner)
    if kind.base == "kentry" or kind.space.startswith("cutlass"):
        return (leaf,)
    full = f"{_titled(kind)}<{leaf}>"
    return (full, leaf) if _CARRIER.search(kind.base) else (full,)


def _innermost(kind: _Type, depth: int) -> _Type | None:
    """The first template argument that is neither a number, a plain type nor plumbing, seen through wrappers."""
    if depth > _DEEPEST:
        return None
    for arg in kind.args:
        if _LITERAL.match(arg) or _SCALAR.match(arg):
            continue
        found = _take(arg)
        if not found.base or _SCALAR.match(found.base) or _NOISE.match(found.base):
            continue
        inner = _innermost(found, depth + 1) if _WRAPPER.match(found.base) else None
        return inner or found
    return None


def _leaf(kind: _Type) -> str:
    """A type with the arguments that matter: scalar types once, sizes, no switches."""
    kept: list[str] = []
    for arg in kind.args:
        short = _take(arg).base or arg
        is_switch = arg in ("true", "false", "nullptr") or arg.startswith("(") or _NOISE.match(short)
        if not is_switch and not (short in kept and not short[:1].isdigit()):
            kept.append(short)
    return f"{_titled(kind)}<{', '.join(kept)}>" if kept else _titled(kind)


def _titled(kind: _Type) -> str:
    """The base name, with its scope where the base alone says nothing."""
    return f"{kind.space}::{kind.base}" if kind.base in _VAGUE and kind.space else kind.base


def _take(text: str) -> _Type:
    """Split a type at its own level; lambdas give way to the function they are in, and lend it their type."""
    parts = [p for p in _split(text.strip(), "::") if p]
    lent = ""
    while len(parts) > 1 and parts[-1].startswith(("{lambda", "lambda", "'lambda")):
        lent = lent or _lambda_type(parts[-1])
        parts.pop()
    if not parts:
        return _Type(text.strip(), "", ())
    scopes = [_bare(p) for p in parts[:-1]]
    space = next((s for s in reversed(scopes) if not _SILENT.match(s)), "")
    args = _arguments(parts[-1]) or ((lent,) if lent else ())
    return _Type(_bare(parts[-1]), space, args)


def _lambda_type(text: str) -> str:
    """The type of a lambda's first argument: `{lambda(c10::Half)#1}` works on Half."""
    found = re.match(r"\W*lambda\(([^(),]*)", text)
    kind = found[1].strip().rpartition("::")[2] if found else ""
    return kind if _SCALAR.match(kind) and not kind.endswith("*") and kind not in ("int", "void") else ""


def _bare(part: str) -> str:
    """A name without its template and call arguments."""
    return re.split(r"[<({]", part, maxsplit=1)[0].strip(" *&") or part.strip(" *&")


def _arguments(part: str) -> tuple[str, ...]:
    """The template arguments of a name."""
    start = part.find("<")
    if start < 0 or "(" in part[:start]:
        return ()
    inside = _until_close(part, start)
    return tuple(a.strip() for a in _split(inside, ",") if a.strip())


def _until_close(text: str, start: int) -> str:
    """What is between the bracket at `start` and the one that closes it, or the end."""
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += _step(found[0])
        if depth == 0:
            return text[start + 1 : found.start()]
    return text[start + 1 :]


def _last_word(text: str) -> str:
    """A signature without its return type: what follows the last space at its own level before the call."""
    words = _split(text.strip(), " ")
    named = [w for w in words if w.strip() and w not in ("void", "static", "inline")]
    return (
        named[0]
        if len(named) == 1
        else next((w for w in reversed(named) if _bare(w)[:1].isalpha() or w[:1] == "_"), text)
    )


def _split(text: str, at: str) -> list[str]:
    """Split where no bracket is open."""
    parts, depth, start = [], 0, 0
    for found in _CUTS[at].finditer(text):
        if found[0] != at:
            depth += _step(found[0])
        elif depth <= 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _step(bracket: str) -> int:
    """How a bracket changes the depth."""
    return 1 if bracket in "<({[" else -1


def _demangled(text: str) -> str:
    """The scopes of an Itanium-mangled function, without its arguments."""
    parts, at = [], 3
    while found := re.match(r"\d{1,3}", text[at:]):
        start = at + len(found[0])
        at = start + int(found[0])
        parts.append(text[start:at])
    kept = [p for p in parts if not p.startswith("_GLOBAL__N_") and not _SILENT.match(p)]
    return "::".join(kept[-2:])


def _cut(text: str, width: int) -> str:
    """Cut to a width: frames lose leading folders, other names their middle."""
    if cell_len(text) <= width:
        return text
    if _FRAME.match(text):
        at = text.find("/", len(text) - width + 1)
        if at > 0 and cell_len(text[at:]) < width:
            return f"…{text[at:]}"
    room = max(width - 1, 0)
    tail = room * 2 // 5
    return _fit(text, room - tail) + "…" * min(width, 1) + _fit(text[::-1], tail)[::-1]


def _fit(text: str, width: int) -> str:
    """As much of the beginning as fits in `width` cells."""
    kept = text[:width]
    while kept and cell_len(kept) > width:
        kept = kept[:-1]
    return kept
