"""Coding agents that run against the server: how each is installed and started, and the requests that it sends."""
