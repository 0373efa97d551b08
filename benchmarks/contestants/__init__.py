"""One small program per implementation and role, each written against its documented API."""
