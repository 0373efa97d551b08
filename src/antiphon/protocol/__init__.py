"""The words of ACP as typed values. Knows no sockets, no event loop and no JSON-RPC envelope."""
