"""JUnit XML: a suite for each implementation, a test for each case.

Rules
- Not supported is skipped; a crash, a timeout and garbage are errors; everything else that did not pass is a failure.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from zarrlite.tools.conformance.results import CaseResult, Run

_TAGS = {"unsupported": "skipped", "crash": "error", "timeout": "error", "garbage": "error"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(run: Run) -> str:
    """The report as a text."""
    root = ElementTree.Element("testsuites", name=_clean(f"{run.suite} {run.suite_version}"))
    for one in run.implementations:
        found = [_TAGS.get(case.result, "failure") for case in one.results.values() if case.result != "pass"]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_clean(f"{one.name} {one.version}"),
            tests=str(len(one.results)),
            failures=str(found.count("failure")),
            errors=str(found.count("error")),
            skipped=str(found.count("skipped")),
            time=f"{one.seconds:.3f}",
        )
        for name, case in one.results.items():
            _add_case(suite, one.name, name, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, implementation: str, name: str, case: CaseResult) -> None:
    folder, _, last = name.rpartition("/")
    classname = _clean(f"{implementation}.{folder.replace('/', '.')}")
    test = ElementTree.SubElement(
        suite, "testcase", classname=classname, name=_clean(last), time=f"{case.ms / 1000:.6f}"
    )
    if case.result != "pass":
        message = _clean(f"{case.result}: {case.detail}")
        ElementTree.SubElement(test, _TAGS.get(case.result, "failure"), type=case.result, message=message)


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
