"""Frameworks and SDKs at work: each module here is one of them, doing the same task over a server on this machine."""
