"""bench/job: a job with staging tables, statement by statement.

tables.sql: the permanent tables and the file that is loaded; job.sql: the job; small.sql:
small statements in PL/pgSQL.
"""
