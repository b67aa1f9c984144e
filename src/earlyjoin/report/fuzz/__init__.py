"""Random joins against DuckDB: ``python -m earlyjoin.report.fuzz``, or ``make fuzz``.

::

    seed ──▶ cases: draws everything ──▶ running: joins, and meddles ──▶ checking ──▶ telling
             (columns, conditions,        (inputs, meddling)              (oracle)
              settings)

Every case is made from one integer, so that this integer replays it. Cases run in a worker process (``workers``): a
crash is a finding, and not the end. DuckDB is a development dependency.
"""
