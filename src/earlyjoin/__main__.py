"""``python -m earlyjoin``: the same as the ``earlyjoin`` command."""

from earlyjoin.cli.process import command

if __name__ == "__main__":
    command()
