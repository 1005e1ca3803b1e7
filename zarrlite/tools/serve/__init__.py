"""Serve a hierarchy over HTTP, to programs and to people. This package is imported only to start a server."""

from zarrlite.tools.serve.server import application, run, run_waitress
from zarrlite.tools.serve.site import Response, Site

__all__ = ["Response", "Site", "application", "run", "run_waitress"]
