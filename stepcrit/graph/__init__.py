"""The dependency graph: rules lay edges, `build` checks them, `schedule` replays them."""
