"""Joins of Spark DataFrames: a few blocks at once in the driver, all the rest by Spark.

PySpark is imported when a DataFrame or a session is needed, never before: the core works without it.
"""
