"""What older documents and real peers say that the schema does not, and how we read it.

`table` is the list of rules, each with its source; `hints` the few names that must be looked for even in messages which
the strict decoder accepts. The other files hold the rules by topic.
"""
