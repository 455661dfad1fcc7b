"""`python -m internalize` is the command line."""

from internalize.cli import main

main()
