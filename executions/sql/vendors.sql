-- Lists the vendor types in order, by one look-up in the index execution_vendor for each.
--
-- :most    int   how many at most
-- returns  vendor_type
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
