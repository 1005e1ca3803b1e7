"""The conformance kit: run the corpus of cases against any implementation of Zarr v3, and say what came out.

Rules
- An implementation is driven as a process of its own by JSON lines (protocol.py); nothing of it is imported here.
- A harness answers with what it got, never with a verdict: judge.py compares.
- What a harness does wrong (a crash, silence, garbage) is a result, never a failure of the runner.
"""
