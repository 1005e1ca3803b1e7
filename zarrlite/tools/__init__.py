"""Programs over the library: the command, the conformance kit, explain and fsck, pictures, laws for tests, the demo."""
