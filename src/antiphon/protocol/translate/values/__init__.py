"""What has the same meaning in both versions and another form, translated without any state.

content.py      content blocks, options, commands
patches.py      changed files: texts of version 1, patches of version 2
handshake.py    capabilities, ways to sign in, MCP servers, lists of sessions
"""
