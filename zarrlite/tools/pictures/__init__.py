"""Pictures of arrays, groups and stored objects as SVG and HTML; imported when the first picture is drawn."""

from __future__ import annotations

from zarrlite.tools.pictures.explained import explained_html, explained_svg
from zarrlite.tools.pictures.nodes import attributes_html, node_html, node_svg

__all__ = ["attributes_html", "explained_html", "explained_svg", "node_html", "node_svg"]
