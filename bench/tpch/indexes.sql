-- Primary keys, and indexes on the foreign keys by which the queries look up
-- rows.  Created after the load, as usual.  Foreign key constraints are left out:
-- no query needs them, and temporary tables rarely have any.

ALTER TABLE region   ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation   ADD PRIMARY KEY (n_nationkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE part     ADD PRIMARY KEY (p_partkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
ALTER TABLE orders   ADD PRIMARY KEY (o_orderkey);
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);

CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON orders   (o_custkey);
CREATE INDEX ON lineitem (l_partkey, l_suppkey);

-- Autovacuum never analyzes a temporary table.
ANALYZE region, nation, supplier, customer, part, partsupp, orders, lineitem;
