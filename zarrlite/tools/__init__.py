"""Programs built on the library: the command, the conformance kit, explain and fsck, pictures, test laws, the demo."""
