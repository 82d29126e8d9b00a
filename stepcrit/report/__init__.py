"""A Document as bytes for people and machines: the only rounding and the only escaping (design §3)."""
