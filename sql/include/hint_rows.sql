\set ECHO none
--
-- Creates table :t, whose page 0 has rows in every state that a transaction can
-- leave a row in.  Later statements find their row by ctid: a scan would set hint
-- bits on the other rows.
--
SET enable_seqscan = off;
CREATE TEMP TABLE :t (id int UNIQUE, v int);
\o /dev/null
-- frozen: 1, 2
INSERT INTO :t VALUES (1, 0), (2, 0);
VACUUM (FREEZE) :t;

-- inserted by a committed transaction: 3; by an aborted one: 4
INSERT INTO :t VALUES (3, 0);
BEGIN;
INSERT INTO :t VALUES (4, 0);
ROLLBACK;
-- inserted by a committed transaction: 5; in a savepoint of it that is rolled back:
-- 6; in one that is released: 7
BEGIN;
INSERT INTO :t VALUES (5, 0);
SAVEPOINT s;
INSERT INTO :t VALUES (6, 0);
ROLLBACK TO s;
INSERT INTO :t VALUES (7, 0);
RELEASE s;
COMMIT;
-- rows for the statements below: 8 to 15
INSERT INTO :t VALUES (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 0), (14, 0);
INSERT INTO :t VALUES (15, 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO :t VALUES (15, 0) ON CONFLICT (id) DO NOTHING;

-- deleted by a committed transaction: 2, 8; by an aborted one: 9; in a savepoint
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
-- locked: 12; locked and then updated in a savepoint: 13, into 17; locked twice: 14.
-- The last two have a multixact.
BEGIN;
SELECT FROM :t WHERE ctid = '(0,12)' FOR UPDATE;
SELECT FROM :t WHERE ctid IN ('(0,13)', '(0,14)') FOR KEY SHARE;
SAVEPOINT s;
UPDATE :t SET v = 1 WHERE ctid = '(0,13)';
SELECT FROM :t WHERE ctid = '(0,14)' FOR UPDATE;
COMMIT;
-- inserted and deleted by an aborted transaction: 18
BEGIN;
INSERT INTO :t VALUES (18, 0);
DELETE FROM :t WHERE ctid = '(0,18)';
ROLLBACK;
RESET enable_seqscan;
\o
\set ECHO all
