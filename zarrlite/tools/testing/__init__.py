"""Laws of zarrlite's interfaces: properties that tests check for every extension and store, including third-party ones.

Rules
- The laws are assertions, which `python -O` removes: every law would pass. The import therefore fails under -O.
"""

if not __debug__:
    raise ImportError("the laws of zarrlite.testing are assertions, which python -O removes; run them without -O")
