"""The command `zarrlite`: one module for each command, loaded when it is the command that was given."""
