\set ECHO none
--
-- refused(statement): the SQLSTATE, message, detail and hint of the error that the
-- statement raises, or "accepted".
--
CREATE FUNCTION refused(statement text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(E'\n', SQLSTATE || ': ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END
$$;
\set ECHO all
