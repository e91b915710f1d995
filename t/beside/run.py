#!/usr/bin/python3
"""Temporary tables read by workers beside other people's software: procedural languages,
drivers and a pooler, which fetch rows in portions, and modules. What each of them returns
must be the same with temp_parallel.enabled on, when workers must have been launched, as
with off, when none are.

For a server with the packages that script/packaging installs for it; connects as a
superuser to the server that the environment names, and leaves extensions behind. The
last line is "N passed, N failed".
"""
import os
import subprocess
import sys
import tempfile
import time

import psycopg
import psycopg2

HERE = os.path.dirname(os.path.abspath(__file__))

# Every plan that can be parallel is. In one transaction, as a pooler may give the next
# transaction to another session.
SETUP = """
SET LOCAL temp_parallel.enabled = {enabled};
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL cpu_tuple_cost = 0.5;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL temp_parallel.write_temp_page_cost = 0;
SET LOCAL temp_parallel.buffer_scan_cost = 0;
SET LOCAL temp_parallel.processors = 1000;
CREATE TEMP TABLE t ON COMMIT DROP AS SELECT i AS id, i % 60 AS k, i * 7919 % 10007 AS v FROM generate_series(1, 3000) i;
ANALYZE t;
"""
LAUNCHED = 'SELECT workers_launched FROM temp_parallel_stats()'

# Queries, of which some rows are fetched, then CHANGE is done, then the others are.
QUERIES = [
    'SELECT k, sum(v) FROM t GROUP BY k ORDER BY k',
    'SELECT id, v FROM t ORDER BY v, id',
    'SELECT sum(v), count(*) FROM t',
    'SELECT id, row_number() OVER (ORDER BY v, id) FROM t',
    'SELECT k, 10000 / (sum(v) - 246000) FROM t GROUP BY k ORDER BY k',
    'SELECT id FROM t WHERE v < 100 ORDER BY id',
]
CHANGE = 'INSERT INTO t SELECT 0, i, 1 FROM generate_series(1, 60) i; DELETE FROM t WHERE id > 2000'
PORTION = 7

# ----------
# Languages
# ----------

# Functions of the query, the size of a portion, and the change.
LANGUAGES = {
    'plpython3u': """
    rows = []
    for c in plpy.cursor(query), plpy.cursor(plpy.prepare(query)):
        rows += [str(sorted(r.items())) for r in c.fetch(n)]
        plpy.execute(change)
        rows += [str(sorted(r.items())) for r in c]
    return rows + [str(sorted(r.items())) for r in plpy.execute(query, n)]
""",
    'plperlu': """
    my ($query, $n, $change) = @_;
    my $line = sub { my $r = shift; return_next(join ' ', map { "$_=$r->{$_}" } sort keys %$r); };
    my $prepared = spi_prepare($query);
    foreach my $c (spi_query($query), spi_query_prepared($prepared)) {
        my $row = spi_fetchrow($c);
        spi_exec_query($_) foreach split /;/, $change;
        for (; defined $row; $row = spi_fetchrow($c)) { $line->($row); }
    }
    $line->($_) foreach @{spi_exec_query($query, $n)->{rows}};
    return;
""",
}


def language(name):
    """Run each query in a function of the language."""
    def run(enabled):
        with psycopg2.connect('') as connection:
            cursor = connection.cursor()
            cursor.execute(SETUP.format(enabled=enabled))
            cursor.execute(f'CREATE FUNCTION pg_temp.fetches(query text, n int, change text) '
                           f'RETURNS SETOF text LANGUAGE {name} AS %s', [LANGUAGES[name]])
            return in_savepoints(cursor, lambda query: fetch_function(cursor, query))
    return run


def fetch_function(cursor, query):
    cursor.execute('SELECT * FROM pg_temp.fetches(%s, %s, %s)', [query, PORTION, CHANGE])
    return cursor.fetchall()


def in_savepoints(cursor, fetch):
    """The rows of all queries, or their errors; and how many workers were launched."""
    rows = []
    for query in QUERIES:
        cursor.execute('SAVEPOINT s')
        try:
            rows.append(fetch(query))
        except (psycopg2.Error, psycopg.Error) as error:
            rows.append(str(error).split('\n', 1)[0])
        cursor.execute('ROLLBACK TO s')
    cursor.execute(LAUNCHED)
    return rows, cursor.fetchone()[0]


# ----------
# Drivers
# ----------

def python(driver, dsn):
    """Run each query with a server-side cursor of the driver."""
    def fetch(connection, cursor, query):
        portions = connection.cursor('c')
        portions.itersize = PORTION
        portions.execute(query)
        rows = portions.fetchmany(PORTION)
        cursor.execute(CHANGE)
        rows += list(portions)
        portions.close()
        return rows

    def run(enabled):
        connection = driver.connect(dsn)
        cursor = connection.cursor()
        cursor.execute(SETUP.format(enabled=enabled))
        result = in_savepoints(cursor, lambda query: fetch(connection, cursor, query))
        connection.rollback()
        connection.close()
        return result
    return run


def output_of(command, text, **settings):
    """What a command prints; its last line is the number of workers."""
    done = subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, **settings), check=False)
    lines = done.stdout.rstrip('\n').split('\n')
    if done.returncode or not lines[-1].isdigit():
        raise RuntimeError(done.stdout)
    return lines[:-1], int(lines[-1])


def psql(enabled):
    queries = ''.join(f'SAVEPOINT s;\n{query};\n{CHANGE};\nROLLBACK TO s;\n' for query in QUERIES)
    return output_of(['psql', '-XqAt', '-v', f'FETCH_COUNT={PORTION}'],
                     f'BEGIN;\n{SETUP.format(enabled=enabled)}\n{queries}\n\\unset FETCH_COUNT\n{LAUNCHED};\n')


def jdbc(enabled):
    return output_of(['java', '-cp', '/usr/share/java/postgresql.jar', f'{HERE}/Portions.java', str(PORTION)],
                     '\n'.join([SETUP.format(enabled=enabled).replace('\n', ' '), CHANGE, LAUNCHED] + QUERIES))


# ----------
# Modules
# ----------

# The library, and statements, with workers, of which the output is compared. EXTENSION is
# created before. pg_qualstats is a library that is loaded when the server starts.
MODULES = {
    'hypopg': """
SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON t (id)');
EXPLAIN (COSTS OFF) SELECT v FROM t WHERE id = 5 LIMIT 1 \\g | grep -o btree_t_id
SELECT k, sum(v) FROM t GROUP BY k ORDER BY k;
SELECT count(*) FROM t WHERE v % 3 = 1;
""",
    'orafce': """
SELECT k, sum(v) FROM t GROUP BY k ORDER BY k;
SELECT k, sum(oracle.nvl(v, 0)), max(oracle.substr(v::text, 2)) FROM t GROUP BY k ORDER BY k;
SELECT oracle.add_months(date '2024-01-31', 1), count(*) FROM t;
SELECT oracle.listagg(k::text, ',' ORDER BY k) FROM (SELECT k, sum(v) FROM t GROUP BY k) s;
""",
    'pgtap': """
SELECT plan(4);
SELECT has_table('t');
SELECT results_eq('SELECT k, sum(v) FROM t GROUP BY k ORDER BY k', 'SELECT k, sum(v) FROM (TABLE t ORDER BY v) s GROUP BY k ORDER BY k');
SELECT bag_eq('SELECT k, count(*) FROM t GROUP BY k', 'SELECT k, 50::bigint FROM generate_series(0, 59) k');
SELECT is((SELECT count(*) FROM t), 3000::bigint);
SELECT * FROM finish();
""",
    'plpgsql_check': """
SET LOCAL plpgsql_check.mode = 'every_start';
SET LOCAL plpgsql_check.profiler = on;
CREATE FUNCTION pg_temp.f() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n bigint;
BEGIN
	SELECT sum(v) INTO n FROM t;
	FOR r IN SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k LOOP
		n := n + r.s * r.k;
	END LOOP;
	UPDATE t SET v = v + 1 WHERE k IN (SELECT k FROM t GROUP BY k HAVING sum(v) % 2 = 0);
	RETURN n;
END $$;
SELECT pg_temp.f();
SELECT pg_temp.f();
SELECT * FROM plpgsql_check_function('pg_temp.f()');
SELECT lineno, exec_stmts FROM plpgsql_profiler_function_tb('pg_temp.f()') ORDER BY lineno;
SELECT sum(v) FROM t;
""",
    'pg_qualstats': """
SELECT pg_qualstats_reset();
SET LOCAL pg_qualstats.sample_rate = 1;
SELECT k, sum(v) FROM t WHERE id > 7 AND v < 9000 GROUP BY k ORDER BY k;
SELECT count(*) FROM t a JOIN t b ON a.id = b.v WHERE a.k = 3;
SELECT count(*) > 0 FROM pg_qualstats();
""",
}


def module(name, libraries):
    def run(enabled):
        return output_of(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1'],
                         f'BEGIN;\n{SETUP.format(enabled=enabled)}{MODULES[name]}{LAUNCHED};\n',
                         PGOPTIONS=f'-c session_preload_libraries={libraries}')
    return run


# ----------
# All
# ----------

def start_pgbouncer(directory):
    """A pooler with a database for each mode; returns the process."""
    server = ' '.join(f'{key}={os.environ[name]}' for key, name in
                      (('host', 'PGHOST'), ('port', 'PGPORT'), ('user', 'PGUSER'), ('password', 'PGPASSWORD'))
                      if name in os.environ)
    with open(f'{directory}/ini', 'w', encoding='utf-8') as ini:
        ini.write('[databases]\n' + ''.join(f'{mode} = {server} dbname=postgres pool_mode={mode}\n'
                                            for mode in ('session', 'transaction')) +
                  f'[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {directory}\n'
                  f'auth_type = any\nlogfile = {directory}/log\n')
    return subprocess.Popen(['pgbouncer', '-q', f'{directory}/ini'])


def main():
    with psycopg2.connect('') as connection:
        connection.cursor().execute(''.join(f'CREATE EXTENSION IF NOT EXISTS {name} CASCADE;' for name in
                                            ['temp_parallel', *LANGUAGES, *MODULES]))
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute('ALTER SYSTEM SET session_preload_libraries = temp_parallel')
    cursor.execute('SELECT pg_reload_conf()')
    time.sleep(1)
    cursor.execute("SELECT extname || ' ' || extversion FROM pg_extension ORDER BY 1")
    print('\n'.join(row[0] for row in cursor.fetchall()))
    print('psycopg2', psycopg2.__version__, '\npsycopg', psycopg.__version__)

    directory = tempfile.mkdtemp()
    pgbouncer = start_pgbouncer(directory)
    time.sleep(1)
    checks = {name: language(name) for name in LANGUAGES}
    checks.update({'psql, FETCH_COUNT': psql, 'pgJDBC': jdbc,
                   'psycopg2': python(psycopg2, ''), 'psycopg 3': python(psycopg, '')})
    checks.update({f'PgBouncer, {mode}': python(psycopg2, f'host={directory} port=6432 dbname={mode}')
                   for mode in ('session', 'transaction')})
    for name in MODULES:
        for libraries in ('temp_parallel',) if name == 'pg_qualstats' else (f'{name},temp_parallel', f'temp_parallel,{name}'):
            checks[f'{name}, {libraries}'] = module(name, 'temp_parallel' if name == 'pgtap' else libraries)

    passed = failed = 0
    for name, run in checks.items():
        try:
            (expected, none), (answer, some) = run('off'), run('on')
            ok = answer == expected and none == 0 and some > 0
            print(f'{"ok" if ok else "not ok"}: {name} ({some} workers)')
            if not ok:
                print('workers without the module:', none)
                for a, b in zip(expected, answer):
                    if a != b:
                        print('off:', str(a)[:2000], '\non: ', str(b)[:2000])
        except Exception as error:  # pylint: disable=broad-except
            ok = False
            print(f'not ok: {name}: {error}')
        passed, failed = passed + ok, failed + (not ok)
    pgbouncer.terminate()
    print(f'{passed} passed, {failed} failed')
    return failed > 0


sys.exit(main())
