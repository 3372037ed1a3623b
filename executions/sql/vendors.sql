-- Lists the vendor types by jumping through the index execution_vendor from each type to the next.
--
-- :most    int   how many at most
-- returns  vendor_type, in order; costs one index look-up for each vendor, whatever the table's size
WITH RECURSIVE vendor AS (
    (SELECT vendor_type FROM execution ORDER BY vendor_type LIMIT 1)
    UNION ALL
    SELECT (
        SELECT e.vendor_type FROM execution e
        WHERE e.vendor_type > v.vendor_type
        ORDER BY e.vendor_type
        LIMIT 1
    )
    FROM vendor v
    WHERE v.vendor_type IS NOT NULL
)
SELECT vendor_type FROM vendor WHERE vendor_type IS NOT NULL LIMIT %(most)s
