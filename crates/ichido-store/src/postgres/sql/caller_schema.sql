-- Whether a table without a schema is looked for, and created, in Ichido's own schema first.
SELECT current_schema() IS NOT DISTINCT FROM 'ichido';
