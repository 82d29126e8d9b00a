"""What is not a torch.profiler trace is refused by its name, so that a user knows what was given.

`refuse_bytes` looks at the first bytes before anything is parsed; `foreign` names a sound JSON
document that turned out to hold no event of torch.profiler's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from stepcrit.errors import EmptyInputError, ForeignInputError, PointerInputError

HEAD_BYTES = 512

_RECORD = "Give a trace from torch.profiler (prof.export_chrome_trace)."

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"SQLite format 3", "an SQLite database (Nsight Systems exports these)", _RECORD),
    (b"PK\x03\x04", "a zip archive", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "compressed twice", "Decompress it once: zstd -d FILE, or gzip -d FILE"),
    (b"\xfd7zXZ\x00", "xz-compressed, which is not supported", "Decompress it first: xz -d FILE"),
    (b"BZh", "bzip2-compressed, which is not supported", "Decompress it first: bzip2 -d FILE"),
    (b"\x04\x22\x4d\x18", "lz4-compressed, which is not supported", "Decompress it first: lz4 -d FILE"),
    (b"\x1f\x8b", "compressed twice", "Decompress it once: gzip -d FILE, or zstd -d FILE"),
    (b"\x89HDF", "an HDF5 file", _RECORD),
    (b"PAR1", "a Parquet file", _RECORD),
    (b"<", "HTML or XML (perhaps a download page)", "Download the raw file."),
)

_HEADER_FORMS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"rocprofiler-sdk-tool"}), "a rocprofv3 result (rocprofiler-sdk-tool)"),
    (frozenset({"nodes", "schema"}), "a PyTorch execution trace (nodes of an ExecutionTraceObserver)"),
    (frozenset({"device_traces"}), "a CUDA memory snapshot (torch.cuda.memory._snapshot)"),
    (frozenset({"segments"}), "a CUDA memory snapshot (torch.cuda.memory._snapshot)"),
    (frozenset({"shared", "profiles"}), "a speedscope profile"),
    (frozenset({"stackFrames", "samples"}), "a Chrome CPU profile"),
    (frozenset({"nodes", "samples", "timeDeltas"}), "a Chrome CPU profile"),
)


def refuse_bytes(head: bytes) -> None:
    """Refuse an input by its first bytes.

    Args:
        head: the first HEAD_BYTES of the unpacked text.

    Raises:
        EmptyInputError: there are none.
        PointerInputError: they are a Git LFS pointer.
        ForeignInputError: they are another format's.
    """
    if not head:
        raise EmptyInputError(
            "The input is empty.", do="Check that the trace was written and copied in full."
        )
    if head.startswith(b"version https://git-lfs"):
        raise PointerInputError(
            "This is a Git LFS pointer, not the trace it stands for.", do="Fetch the trace: git lfs pull"
        )
    for magic, name, do in _MAGIC:
        if head.startswith(magic):
            raise ForeignInputError(f"The input is {name}.", do=do)
    wide = _wide_encoding(head)
    if wide:
        raise ForeignInputError(
            f"The input is text in {wide}.",
            do=f"Write it again in UTF-8: iconv -f {wide} -t UTF-8 FILE (PowerShell's > writes UTF-16).",
        )
    name = _binary_name(head)
    if name:
        raise ForeignInputError(f"The input is {name}.", do=_RECORD)


def _wide_encoding(head: bytes) -> str:
    """The encoding in which these bytes are the start of JSON, where it is none in which JSON is sent; or ""."""
    # the wider ones first: UTF-32 of ASCII is also UTF-16 of the same with NULs between
    for name in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE"):
        text = head.decode(name, "ignore").lstrip("\ufeff \t\r\n")
        if text.startswith(("{", "[")):
            return name
    return ""


def _binary_name(head: bytes) -> str:
    """The name of a binary format without a fixed first word, or ""."""
    if head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}:
        return "a Python pickle, which is never opened (unpickling runs code)"
    if head[:1] == b"\x0a" and head[1:2] not in {b"", b"{", b"[", b" ", b"\t", b"\r", b"\n"}:
        return "a Perfetto protobuf trace"
    if head[257:262] == b"ustar":
        return "a tar archive"
    # a damaged name may hold a zero byte; text in UTF-16 is every other one
    is_text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["} and 10 * head.count(b"\x00") < len(head)
    return "binary data" if b"\x00" in head and not is_text else ""


def foreign(header: Mapping[str, bytes], sample: bytes, categories: Collection[str]) -> ForeignInputError:
    """Name a document that holds no event of torch.profiler's.

    Args:
        header: JSON text of its top-level values, by key; empty for a bare list.
        sample: the first bytes of its list of events, if it has one.
        categories: the categories of its events, if it has any.

    Returns:
        The error to raise.
    """
    named = [name for name in categories if name]
    if named:
        what = f"a Chrome trace of another program: no category is torch.profiler's ({_some(named)})"
    else:
        what = _form_of_list(sample) if sample else _form_of_header(header)
    return ForeignInputError(f"The input is {what}.", do=_RECORD)


def form_of_keys(keys: Collection[str]) -> str:
    """Which known other format has such top-level keys, or ""; also where its values cannot be read."""
    return next((form for named, form in _HEADER_FORMS if named <= set(keys)), "")


def _form_of_header(header: Mapping[str, bytes]) -> str:
    """What an object without events is."""
    if b"speedscope" in header.get("$schema", b""):
        return "a speedscope profile"
    form = form_of_keys(header)
    if form:
        return form
    if header and all(_is_list_of_text(value) for value in header.values()):
        return "a map from operators to kernels (TraceLens)"
    if "traceEvents" in header or not header:
        return "JSON without any trace event"
    return f"JSON, but no trace: there is no traceEvents among its keys ({_some(list(header))})"


def _form_of_list(sample: bytes) -> str:
    """What a list of things that are no trace events is, by the text of the first ones."""
    if b'"replay_ir"' in sample or b'"op_name"' in sample:
        return "an event-replay IR (TraceLens), not a trace"
    if b'"ph"' in sample:
        return "a Chrome trace of another program: its events have no category"
    first = sample.lstrip()[:1]
    if first == b"[":
        return "a list of lists, such as a PyTorch memory timeline, not a trace"
    if first == b"]":
        return "JSON without any trace event"
    return "a list of JSON values that are no trace events"


def _some(words: Sequence[str]) -> str:
    """The first few of many words."""
    return ", ".join(words[:3]) + (", ..." if len(words) > 3 else "")


def _is_list_of_text(value: bytes) -> bool:
    """Whether a JSON text is a list of strings."""
    try:
        msgspec.json.decode(value, type=list[str])
    except msgspec.DecodeError:
        return False
    return True
