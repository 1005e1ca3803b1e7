"""Programs built on the library: the command `zarrlite`, the conformance kit, explain and fsck, pictures, test laws."""
