"""Every message of ACP v1, stable and unstable, a module per topic. Nothing is imported here: start-up time counts."""
