"""One form of extension, one registry, and typed getters over JSON."""
