-- The moment that is so long ago, by the clock of the database.
--
-- :age interval
SELECT now() - %(age)s::interval
