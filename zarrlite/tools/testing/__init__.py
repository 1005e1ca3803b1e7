"""Tools to test what others build on zarrlite: the laws that its interfaces obey.

Rules
- The laws are assertions. `python -O` removes those, so that everything would seem to obey: it is refused.
"""

if not __debug__:
    raise ImportError("the laws of zarrlite.testing are assertions, which python -O removes; run them without -O")
