"""Adapters for other libraries. A module that imports an optional library is itself imported only when it is used."""
