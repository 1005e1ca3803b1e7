"""The conformance kit: run the corpus of cases against any implementation of Zarr v3 and report the results.

Rules
- Each implementation runs in its own process and is driven by JSON lines (protocol.py); its code is never imported.
- A harness reports the results of its library and never judges them: judge.py compares them with the expected ones.
- The misbehaviour of a harness (a crash, silence, garbage) is a result, never a failure of the runner.
"""
