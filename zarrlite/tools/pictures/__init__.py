"""Pictures of arrays, groups and stored objects: SVG and HTML, written by hand. Loaded when one is first asked for."""

from __future__ import annotations

from zarrlite.tools.pictures.explained import explained_html, explained_svg
from zarrlite.tools.pictures.nodes import node_html, node_svg

__all__ = ["explained_html", "explained_svg", "node_html", "node_svg"]
