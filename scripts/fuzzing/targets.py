"""Every target, by name."""

from __future__ import annotations

from fuzzing.answering import ANSWERS
from fuzzing.argv import ARGV
from fuzzing.asking import CONFIG_AND_WORDS
from fuzzing.judge import Target
from fuzzing.reading import PACKED, READER
from fuzzing.sinks import SINKS
from fuzzing.slimming import SLIM
from fuzzing.twins import KERNELS

TARGETS: dict[str, Target] = {
    target.name: target for target in (READER, PACKED, KERNELS, ANSWERS, SINKS, CONFIG_AND_WORDS, ARGV, SLIM)
}
