"""JUnit XML: a suite for each implementation, a test for each case.

Rules
- `unsupported` is a skipped test; crash, timeout and garbage are errors; every other result except `pass` is a failure.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from zarrlite.tools.conformance.results import CaseResult, Run

_TAGS = {"unsupported": "skipped", "crash": "error", "timeout": "error", "garbage": "error"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(run: Run) -> str:
    """Return the XML of the report."""
    root = ElementTree.Element("testsuites", name=_clean(f"{run.suite} {run.suite_version}"))
    for implementation in run.implementations:
        cases = implementation.results.values()
        tags = [_TAGS.get(case.result, "failure") for case in cases if case.result != "pass"]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_clean(f"{implementation.name} {implementation.version}"),
            tests=str(len(cases)),
            failures=str(tags.count("failure")),
            errors=str(tags.count("error")),
            skipped=str(tags.count("skipped")),
            time=f"{implementation.seconds:.3f}",
        )
        for case_id, case in implementation.results.items():
            _add_case(suite, implementation.name, case_id, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, implementation: str, case_id: str, case: CaseResult) -> None:
    folder, _, name = case_id.rpartition("/")
    classname = _clean(f"{implementation}.{folder.replace('/', '.')}")
    test = ElementTree.SubElement(
        suite, "testcase", classname=classname, name=_clean(name), time=f"{case.ms / 1000:.6f}"
    )
    if case.result != "pass":
        message = _clean(f"{case.result}: {case.detail}")
        ElementTree.SubElement(test, _TAGS.get(case.result, "failure"), type=case.result, message=message)


def _clean(text: str) -> str:
    """Replace the characters that XML does not allow."""
    return _NOT_XML.sub("?", text)
