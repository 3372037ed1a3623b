-- Has the statements of this transaction wait for a lock for a short time only, because the transaction holds other
-- locks meanwhile.
SET LOCAL lock_timeout = '200ms'
