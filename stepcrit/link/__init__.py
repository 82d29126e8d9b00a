"""How events belong together: launches, nesting, steps, collectives. Values in, values out."""
