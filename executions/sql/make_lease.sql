-- Makes the row of a lease, free, if it does not exist.
--
-- :work text
INSERT INTO execution_lease (name) VALUES (%(work)s) ON CONFLICT DO NOTHING
