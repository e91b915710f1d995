\set ECHO none
--
-- Makes table :t, with rows of all kinds of transactions on page 0. What follows
-- an insertion finds its row by ctid, as a scan would set hints on all the others.
--
SET enable_seqscan = off;
CREATE TEMP TABLE :t (id int UNIQUE, v int);
\o /dev/null
-- frozen: 1, 2
INSERT INTO :t VALUES (1, 0), (2, 0);
VACUUM (FREEZE) :t;

-- inserted by a transaction that commits: 3; that aborts: 4
INSERT INTO :t VALUES (3, 0);
BEGIN;
INSERT INTO :t VALUES (4, 0);
ROLLBACK;
-- by one that commits: 5; in its savepoint that is rolled back: 6; released: 7
BEGIN;
INSERT INTO :t VALUES (5, 0);
SAVEPOINT s;
INSERT INTO :t VALUES (6, 0);
ROLLBACK TO s;
INSERT INTO :t VALUES (7, 0);
RELEASE s;
COMMIT;
-- for what follows: 8 to 15
INSERT INTO :t VALUES (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 0), (14, 0);
INSERT INTO :t VALUES (15, 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO :t VALUES (15, 0) ON CONFLICT (id) DO NOTHING;

-- deleted by a transaction that commits: 2, 8; that aborts: 9; in a savepoint
-- that is rolled back: 10
DELETE FROM :t WHERE ctid = '(0,2)';
DELETE FROM :t WHERE ctid = '(0,8)';
BEGIN;
DELETE FROM :t WHERE ctid = '(0,9)';
ROLLBACK;
BEGIN;
SAVEPOINT s;
DELETE FROM :t WHERE ctid = '(0,10)';
ROLLBACK TO s;
COMMIT;
-- updated: 11, into 16
UPDATE :t SET v = 1 WHERE ctid = '(0,11)';
-- locked: 12; locked, and then updated in a savepoint: 13, into 17; locked twice:
-- 14. The latter two have a multixact.
BEGIN;
SELECT FROM :t WHERE ctid = '(0,12)' FOR UPDATE;
SELECT FROM :t WHERE ctid IN ('(0,13)', '(0,14)') FOR KEY SHARE;
SAVEPOINT s;
UPDATE :t SET v = 1 WHERE ctid = '(0,13)';
SELECT FROM :t WHERE ctid = '(0,14)' FOR UPDATE;
COMMIT;
-- inserted and deleted by a transaction that aborts: 18
BEGIN;
INSERT INTO :t VALUES (18, 0);
DELETE FROM :t WHERE ctid = '(0,18)';
ROLLBACK;
RESET enable_seqscan;
\o
\set ECHO all
