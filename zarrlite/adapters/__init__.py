"""Adapters for other libraries. Each module imports one of them, and is loaded only with it."""
