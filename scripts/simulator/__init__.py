"""A small discrete-event simulator of training steps: the ground truth stepcrit is measured against.

It imports nothing from `stepcrit`, on purpose: a model cannot vouch for itself.
"""
