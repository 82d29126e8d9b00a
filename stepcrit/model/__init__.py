"""The nouns: event columns, traces, steps, graph tables, sections. No I/O and no algorithms."""
