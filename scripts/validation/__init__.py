"""How far predictions can be trusted, measured: against the simulator, real pairs, and steps of one trace."""
