"""Everything earlyjoin raises on purpose.

The classes say whose turn it is to act: :class:`InputError` is for the caller (the command line ends with exit
code 2), the others report what happened while running (exit code 1).
"""


class EarlyJoinError(Exception):
    """Base of every error that earlyjoin raises on purpose.

    ``command`` is the message in the words of the command line, where those differ from Python's.
    """

    def __init__(self, *message: object, command: str | None = None) -> None:
        super().__init__(*message)
        self.command = command


class InputError(EarlyJoinError):
    """An argument or an input is wrong: the message names it and says what is allowed."""


class UnsupportedError(InputError):
    """A combination of predicate, type, join type and algorithm that is refused before any data is read."""


class BudgetExceeded(EarlyJoinError):
    """The memory budget cannot hold what the operator needs."""


class SourceError(EarlyJoinError):
    """An input broke while it was being read."""


class SinkError(EarlyJoinError):
    """The output could not be written."""


class SpillClosed(EarlyJoinError):
    """The query has ended and its spill directory is gone: for a reader that is the end, too."""


class DamagedFile(EarlyJoinError):
    """A spill file, or a file of a saved state, is not as it was written: the message names it."""


class SnapshotError(EarlyJoinError):
    """A saved state does not fit what it is to be restored into."""


class DamagedState(DamagedFile, SnapshotError):
    """A file of a saved state is not as it was written."""
