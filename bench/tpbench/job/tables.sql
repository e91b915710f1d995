-- The permanent tables of the job, and the file that it loads.
-- psql variables: rows, file

CREATE TABLE customers AS
SELECT i AS customer, i % 25 AS region, i * 7919 % 4 AS segment, i % 50 = 7 AS closed
  FROM generate_series(1, :rows / 100) AS i;
ALTER TABLE customers ADD PRIMARY KEY (customer);

CREATE TABLE products AS
SELECT i AS product, i % 20 AS category
  FROM generate_series(1, :rows / 200) AS i;
ALTER TABLE products ADD PRIMARY KEY (product);

CREATE TABLE rates AS
SELECT currency, date '2026-01-01' + d AS day, 0.8 + d % 7 / 100.0 AS rate
  FROM generate_series(0, 364) AS d, unnest(ARRAY['USD', 'GBP', 'CHF']) AS currency;
ALTER TABLE rates ADD PRIMARY KEY (currency, day);

CREATE TABLE sales_by_day (day date, region integer, channel integer, lines bigint,
    amount numeric, PRIMARY KEY (day, region, channel));

ANALYZE;

-- Three lines per order. 3 % are lines sent twice, 2 % are new versions of lines. Few
-- customers buy much.
COPY (
    SELECT n / 3, n % 3, version, date '2026-01-01' + (n / 3 * 31 % 365)::integer,
           1 + floor((n / 3 * 104729 % 1000003 / 1000003::float8) ^ 2 * (:rows / 100)),
           1 + n * 7919 % (:rows / 200), n / 3 % 7,
           (ARRAY['EUR', 'USD', 'GBP', 'CHF'])[1 + n / 3 % 4],
           version + n % 11, round(n * 104729 % 9973 / 100.0, 2), repeat('x', 20)
      FROM (SELECT i AS n, 1 AS version FROM generate_series(1::bigint, :rows * 95 / 100) AS i
             UNION ALL
            SELECT i * 7, 1 FROM generate_series(1::bigint, :rows * 3 / 100) AS i
             UNION ALL
            SELECT i * 11, 2 FROM generate_series(1::bigint, :rows * 2 / 100) AS i) AS sent
) TO :'file' (FORMAT csv);
