"""What is different while the service works on the tables of a running Harbor."""
