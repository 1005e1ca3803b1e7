"""The command `zarrlite`: one module for each subcommand, imported only if that subcommand is run."""
