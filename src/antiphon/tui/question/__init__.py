"""Questions of an agent that have a panel of their own.

permission.py  may the agent do this: once, always, all edits, no, no because …
sign_in.py     which way to sign in, and running it
"""
