"""The command line: ``earlyjoin join``, ``demo`` and ``algorithms``. Starts without importing the kernels."""
