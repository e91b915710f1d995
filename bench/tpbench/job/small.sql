-- Statements that are so small that what is decided for each is what they take. Over the
-- temporary table small, of 100 rows.

-- 100,000 expressions (at most 1.02)
DO $$
DECLARE
    n bigint := 0;
BEGIN
    FOR i IN 1..100000 LOOP
        n := n + i * 2;
    END LOOP;
END $$;

-- 10,000 loops (at most 1.02)
DO $$
DECLARE
    n bigint := 0;
    r record;
BEGIN
    FOR i IN 1..10000 LOOP
        FOR r IN SELECT k, sum(v) AS v FROM small WHERE id <= 3 GROUP BY k LOOP
            n := n + r.v;
        END LOOP;
    END LOOP;
END $$;

-- 10,000 SELECT INTO (at most 1.02)
DO $$
DECLARE
    n bigint;
BEGIN
    FOR i IN 1..10000 LOOP
        SELECT sum(v) INTO n FROM small WHERE id = i % 100;
    END LOOP;
END $$;
