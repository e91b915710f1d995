--
-- Settings: types, bounds, units, defaults, and who may set them. A wrong bound would let a
-- negative cost choose a plan whose flush it should have prevented.
--
\ir include/start.psql
CREATE ROLE regress_tp_pgtap;

-- These and no others. (What the server's configuration has set is not looked at.)
SELECT results_eq(
	$$ SELECT name, vartype, unit, context, min_val, max_val, boot_val, enumvals FROM pg_settings
		WHERE name LIKE 'temp\_parallel.%' ORDER BY name COLLATE "C" $$,
	$$ VALUES
		('temp_parallel.buffer_scan_cost', 'real', NULL, 'user', '0', '1.79769e+308', '0.01', NULL),
		('temp_parallel.enabled', 'bool', NULL, 'user', NULL, NULL, 'on', NULL),
		('temp_parallel.processors', 'integer', NULL, 'user', '0', '2147483647', '0', NULL),
		('temp_parallel.run_ahead', 'enum', NULL, 'user', NULL, NULL, 'on', '{off,insert,modify,on}'::text[]),
		('temp_parallel.share_local_buffers', 'bool', NULL, 'user', NULL, NULL, 'on', NULL),
		('temp_parallel.write_temp_page_cost', 'real', NULL, 'user', '0', '1.79769e+308', '1.3', NULL) $$,
	'types, bounds and defaults');
SELECT isnt(short_desc, '', name || ' is described') FROM pg_settings WHERE name LIKE 'temp\_parallel.%' ORDER BY name;

-- The prefix is reserved: a misspelled name is an error, not a placeholder.
SELECT throws_ok('SET temp_parallel.enable = off', '42602',
				 'invalid configuration parameter name "temp_parallel.enable"', 'a misspelled name');

-- Any role may set them, to values in their bounds; others are an error, and change nothing.
SET LOCAL ROLE regress_tp_pgtap;
SELECT concat_ws(E'\n', lives_ok(format('SET LOCAL temp_parallel.%s = %s', name, value), format('%s = %s', name, value)),
				 is(current_setting('temp_parallel.' || name)::float8, value::float8, format('%s is %s', name, value)))
FROM (VALUES ('write_temp_page_cost', '0'), ('write_temp_page_cost', '1e308'), ('buffer_scan_cost', '0'), ('buffer_scan_cost', '1e308'),
			 ('processors', '0'), ('processors', '2147483647'), ('processors', '1')) s (name, value);
SELECT concat_ws(E'\n', lives_ok(format('SET LOCAL temp_parallel.%s = %s', name, value), format('%s = %s', name, value)),
				 is(current_setting('temp_parallel.' || name), value, format('%s is %s', name, value)))
FROM (VALUES ('enabled', 'off'), ('enabled', 'on'), ('share_local_buffers', 'off'), ('share_local_buffers', 'on'),
			 ('run_ahead', 'insert'), ('run_ahead', 'modify'), ('run_ahead', 'off'), ('run_ahead', 'on')) s (name, value);
RESET ROLE;
SELECT set_config(name, boot_val, true) FROM pg_settings WHERE name LIKE 'temp\_parallel.%' \g /dev/null
SELECT concat_ws(E'\n', throws_matching(format('SET temp_parallel.%s = %s', s.name, value), message, format('%s = %s', s.name, value)),
				 is(current_setting(p.name), boot_val, s.name || ' is as before'))
FROM (VALUES ('write_temp_page_cost', '-1', '^-1 is outside the valid range .*\(0 \.\. 1\.79769e\+308\)$'),
			 ('write_temp_page_cost', '''NaN''', '^invalid value for parameter "temp_parallel.write_temp_page_cost": "NaN"$'),
			 ('buffer_scan_cost', '-0.01', '^-0\.01 is outside the valid range .*\(0 \.\. 1\.79769e\+308\)$'),
			 ('enabled', 'maybe', 'requires a Boolean value$'),
			 ('share_local_buffers', '2', 'requires a Boolean value$'),
			 ('run_ahead', 'maybe', '^invalid value for parameter "temp_parallel.run_ahead": "maybe"$'),
			 ('processors', '-1', '^-1 is outside the valid range .*\(0 \.\. 2147483647\)$'),
			 ('processors', '''1kB''', '^invalid value for parameter "temp_parallel.processors": "1kB"$')) s (name, value, message),
	 pg_settings p WHERE p.name = 'temp_parallel.' || s.name;

-- EXPLAIN (SETTINGS) prints those that differ from their defaults.
CREATE FUNCTION explained(options text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	lines text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		lines := concat_ws(E'\n', lines, line);
	END LOOP;
	RETURN lines;
END $$;
SELECT unalike(explained('COSTS OFF, SETTINGS', 'SELECT 1'), '%temp\_parallel.%', 'EXPLAIN (SETTINGS) at the defaults');
SET LOCAL temp_parallel.buffer_scan_cost = 0.5;
SELECT alike(explained('COSTS OFF, SETTINGS', 'SELECT 1'), '%temp\_parallel.buffer\_scan\_cost = ''0.5''%', 'EXPLAIN (SETTINGS)');

SELECT * FROM finish();
ROLLBACK;
