"""Agents and clients on a network: how they are reached, and what is seen of their HTTP and WebSocket traffic.

agents.py   agents at an address, where they work, and the scenarios that make no sense with them
"""
