"""`python -m stepcrit`."""

from stepcrit.cli.main import main

main()
