"""One file, one question. Analyses take a step on its graph and return a frozen result; none knows another."""
