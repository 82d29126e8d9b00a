"""What `scripts/fuzz.py` is made of: one file a target, and what all of them share."""
