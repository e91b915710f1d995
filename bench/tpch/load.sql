-- Create, fill, index and analyze the TPC-H tables in this session.
-- psql variables: persistence = TEMP | UNLOGGED
--                 data        = the directory that bench/tpch/generate filled
--
-- psql -v persistence=TEMP -v data=DIR -f bench/tpch/load.sql -f bench/tpch/q01.sql

\ir schema.sql

-- \copy does not expand variables, so change to the directory and back.
\set here `pwd`
\cd :data
\copy region   FROM 'region.csv'   CSV HEADER
\copy nation   FROM 'nation.csv'   CSV HEADER
\copy supplier FROM 'supplier.csv' CSV HEADER
\copy customer FROM 'customer.csv' CSV HEADER
\copy part     FROM 'part.csv'     CSV HEADER
\copy partsupp FROM 'partsupp.csv' CSV HEADER
\copy orders   FROM 'orders.csv'   CSV HEADER
\copy lineitem FROM 'lineitem.csv' CSV HEADER
\cd :here

\ir indexes.sql
