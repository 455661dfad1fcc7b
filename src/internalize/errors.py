"""The one exception a user's mistake raises: a sentence that says what is wrong, where, and how to mend it."""


class UserError(Exception):
    """A mistake of the user's, not of the program's. The command line prints it without a traceback and exits with 2."""
