"""Groups and their metadata."""

from zarrlite.metadata.documents import ConsolidatedMetadata, GroupMetadata
from zarrlite.nodes.convenience import create_hierarchy
from zarrlite.nodes.group import Group

__all__ = ["ConsolidatedMetadata", "Group", "GroupMetadata", "create_hierarchy"]
