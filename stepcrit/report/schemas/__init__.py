"""JSON Schemas of what stepcrit writes: declared, never inferred, so that a key nobody declared is a failing test."""
