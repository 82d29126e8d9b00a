"""The command line: one file a command. The only place that turns errors into exit codes."""
