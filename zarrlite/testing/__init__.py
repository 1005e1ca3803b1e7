"""Tools to test what others build on zarrlite: the laws that its interfaces obey."""
