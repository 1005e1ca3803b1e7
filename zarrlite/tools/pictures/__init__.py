"""Pictures of arrays, groups and stored objects as SVG and HTML. This package is imported only to draw a picture."""

from __future__ import annotations

from zarrlite.tools.pictures.explained import explained_html, explained_svg
from zarrlite.tools.pictures.nodes import attributes_html, node_html, node_svg

__all__ = ["attributes_html", "explained_html", "explained_svg", "node_html", "node_svg"]
