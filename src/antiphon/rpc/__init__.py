"""JSON-RPC 2.0 as plain functions of bytes. Knows ids and methods; knows neither ACP nor an event loop."""
