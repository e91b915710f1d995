-- A nightly job: the sales of a year arrive in a file, are cleaned, enriched and added up,
-- and the result goes into the permanent table sales_by_day.
--
-- psql variables: persistence = TEMP | UNLOGGED, file. Above each statement are its name,
-- how long it may take when on (off is 1), and whether it is one that is run ahead.

-- create (at most 1.05)
CREATE :persistence TABLE received (order_no bigint, line integer, version integer, day date,
    customer integer, product integer, channel integer, currency text, quantity integer,
    price numeric(10, 2), note text);
CREATE :persistence TABLE sales (order_no bigint, line integer, day date, customer integer,
    region integer, segment integer, category integer, channel integer, amount numeric,
    rebate integer DEFAULT 0);
CREATE :persistence TABLE totals (id bigint GENERATED ALWAYS AS IDENTITY, customer integer
    PRIMARY KEY, lines bigint, amount numeric, largest numeric, last_day date);
CREATE :persistence TABLE log (entry text, value numeric);

-- copy, first fill (at most 1.15)
COPY received FROM :'file' (FORMAT csv);

-- analyze received (at most 1.05)
ANALYZE received;

-- delete copies by ctid (at most 0.85, run ahead)
DELETE FROM received AS a
 USING received AS b
 WHERE a.order_no = b.order_no AND a.line = b.line AND a.version = b.version
   AND a.ctid > b.ctid;

-- delete by row_number (at most 1.05)
-- Not run ahead: each row goes through the window function, which the leader computes.
DELETE FROM received
 WHERE ctid IN (SELECT ctid
                  FROM (SELECT ctid, row_number() OVER (PARTITION BY order_no, line
                                                        ORDER BY version DESC) AS n
                          FROM received) AS numbered
                 WHERE n > 1);

-- index received (at most 1.05)
CREATE UNIQUE INDEX ON received (order_no, line);

-- insert sales, enriched (at most 1.05)
-- Not run ahead: so many rows cost more to send than workers save.
INSERT INTO sales
SELECT r.order_no, r.line, r.day, r.customer, c.region, c.segment, p.category, r.channel,
       round(r.quantity * r.price * coalesce(x.rate, 1), 2)
  FROM received AS r
  JOIN customers AS c USING (customer)
  JOIN products AS p USING (product)
  LEFT JOIN rates AS x ON x.currency = r.currency AND x.day = r.day;

-- index sales (at most 1.05)
CREATE INDEX ON sales (customer);

-- analyze sales (at most 1.05)
ANALYZE sales;

-- insert totals (at most 0.85, run ahead)
INSERT INTO totals (customer, lines, amount)
SELECT customer, count(*), sum(amount)
  FROM sales
 WHERE day < '2026-10-01'
 GROUP BY customer;

-- merge totals (at most 0.85, run ahead)
MERGE INTO totals AS t
USING (SELECT customer, count(*) AS lines, sum(amount) AS amount
         FROM sales
        WHERE day >= '2026-10-01'
        GROUP BY customer) AS s
   ON s.customer = t.customer
 WHEN MATCHED THEN UPDATE SET lines = t.lines + s.lines, amount = t.amount + s.amount
 WHEN NOT MATCHED THEN INSERT (customer, lines, amount)
      VALUES (s.customer, s.lines, s.amount);

-- update totals from aggregate (at most 0.85, run ahead)
UPDATE totals AS t
   SET largest = s.largest, last_day = s.last_day
  FROM (SELECT customer, max(amount) AS largest, max(day) AS last_day
          FROM sales
         GROUP BY customer) AS s
 WHERE s.customer = t.customer;

-- update sales from aggregate (at most 0.85, run ahead)
UPDATE sales AS s
   SET rebate = 5
  FROM (SELECT customer FROM sales GROUP BY customer HAVING count(*) > 1000) AS big
 WHERE big.customer = s.customer;

-- delete using (at most 0.85, run ahead)
DELETE FROM sales AS s
 USING customers AS c
 WHERE c.customer = s.customer AND c.closed;

-- report (at most 1.05)
SELECT c.segment, s.category, count(*), sum(s.amount), avg(t.amount)
  FROM sales AS s
  JOIN customers AS c USING (customer)
  JOIN totals AS t USING (customer)
 GROUP BY c.segment, s.category
 ORDER BY c.segment, s.category;

-- PL/pgSQL: SELECT INTO (at most 0.70, run ahead)
DO $$
DECLARE
    n numeric;
BEGIN
    SELECT sum(amount) INTO n FROM sales;
    INSERT INTO log VALUES ('amount', n);
END $$;

-- PL/pgSQL: assignment (at most 0.70, run ahead)
DO $$
DECLARE
    n numeric;
BEGIN
    n := (SELECT sum(amount) FROM sales WHERE rebate > 0);
    INSERT INTO log VALUES ('with rebate', n);
END $$;

-- PL/pgSQL: FOR over GROUP BY (at most 0.70, run ahead)
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT region, channel, sum(amount) AS amount FROM sales GROUP BY region, channel LOOP
        INSERT INTO log VALUES (format('region %s, channel %s', r.region, r.channel), r.amount);
    END LOOP;
END $$;

-- PL/pgSQL: EXECUTE INTO (at most 1.05)
DO $$
DECLARE
    n numeric;
BEGIN
    EXECUTE format('SELECT sum(amount) FROM %I WHERE category = $1', 'sales') INTO n USING 7;
    INSERT INTO log VALUES ('category 7', n);
END $$;

-- insert on conflict, permanent (at most 0.85, run ahead)
INSERT INTO sales_by_day AS d
SELECT day, region, channel, count(*), sum(amount)
  FROM sales
 GROUP BY day, region, channel
    ON CONFLICT (day, region, channel) DO UPDATE
   SET lines = d.lines + excluded.lines, amount = d.amount + excluded.amount;
