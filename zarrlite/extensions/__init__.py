"""The base class of extensions, their registries, and typed JSON getters."""
