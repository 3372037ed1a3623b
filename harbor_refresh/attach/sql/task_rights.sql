-- Finds the columns of Harbor's tasks that a report writes, and that this role may not write.
--
-- returns  role, the columns (NULL: none is missing), separated by commas
SELECT
    quote_ident(current_user),
    string_agg(w.name, ', ' ORDER BY w.place)
        FILTER (WHERE NOT has_column_privilege('public.task', w.name, 'UPDATE'))
FROM unnest(ARRAY[
    'status', 'status_code', 'status_revision', 'status_message', 'run_count', 'start_time', 'update_time', 'end_time'
]) WITH ORDINALITY AS w (name, place)
