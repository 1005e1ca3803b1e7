"""The exception hierarchy: everything that bad input can raise.

Rules
- Each class inherits from the standard exception that callers would catch anyway (ValueError, KeyError, OSError ...).
- A message says what is wrong, where, and what would be right. The location is also available as attributes.
- Every error can be pickled, so that worker processes can return it.
"""

from __future__ import annotations

from typing import Any, Literal, Self

FaultKind = Literal[
    "json",  # the text is not strict JSON
    "missing",  # a required member is absent
    "type",  # a member has the wrong JSON type
    "value",  # a member has the right type but a forbidden value
    "conflict",  # two members contradict each other
    "limit",  # a number, depth or size is larger than zarrlite supports
    "unknown-member",  # an object has a member that is not defined
    "unknown-extension",  # an extension is not registered
]


class ZarrliteError(Exception):
    """Base class of all errors that zarrlite raises because of its input."""

    def __init__(self, message: str, **where: Any) -> None:
        """Create an error.

        Parameters
        ----------
        message : str
            The reason and, if there is one, a remedy.
        **where : object
            The location of the fault; each keyword becomes an attribute of the error.
        """
        super().__init__(message)
        self.message = message
        self._where = where
        for name, value in where.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._where)


def _rebuild(cls: type[ZarrliteError], message: str, where: dict[str, Any]) -> ZarrliteError:
    return cls(message, **where)


class ArgumentError(ZarrliteError, ValueError):
    """A call has an invalid argument; correct the call."""


class DependencyError(ZarrliteError, ImportError):
    """An optional package is not installed; the message names the extra to install."""


class MetadataError(ZarrliteError, ValueError):
    """A metadata document is invalid.

    `pointer` locates the first fault, `kind` classifies it, and `problems` contains all faults in the document.
    """

    def __init__(
        self,
        message: str,
        *,
        pointer: str = "",
        kind: FaultKind = "value",
        document: str = "zarr.json",
        problems: tuple[MetadataError, ...] = (),
    ) -> None:
        """Create an error.

        Parameters
        ----------
        message : str
            The reason, without the location.
        pointer : str, optional
            JSON pointer to the fault; empty for the document itself.
        kind : FaultKind, optional
            The kind of fault, such as "missing" or "type".
        document : str, optional
            The key of the document, or another name for it.
        problems : tuple of MetadataError, optional
            All faults in the document, including this one. Omit it if this is the only fault.

        Examples
        --------
        >>> print(MetadataError("must be 3, not 2", pointer="/zarr_format"))
        zarr.json#/zarr_format: must be 3, not 2
        """
        super().__init__(message, pointer=pointer, kind=kind, document=document, problems=problems)
        self.pointer, self.kind, self.document = pointer, kind, document
        self.problems: tuple[MetadataError, ...] = problems or (self,)

    def __str__(self) -> str:
        text = f"{self.document}#{self.pointer}: {self.message}"
        others = len(self.problems) - 1
        return f"{text} (and {others} more)" if others else text

    def under(self, prefix: str, document: str | None = None) -> Self:
        """Return the same error, with `prefix` prepended to every pointer.

        If `document` is passed, it becomes the name of the document.
        """
        others = tuple(p.under(prefix, document) for p in self.problems) if len(self.problems) > 1 else ()
        return type(self)(
            self.message,
            pointer=prefix + self.pointer,
            kind=self.kind,
            document=document or self.document,
            problems=others,
        )


class UnknownExtensionError(MetadataError):
    """A document requires an extension that is not registered; register it, or use a library that supports it."""


class MetadataWarning(UserWarning):
    """A document was read despite a fault; `pointer` locates the fault."""

    def __init__(self, message: str, pointer: str = "") -> None:
        """Create a warning.

        Parameters
        ----------
        message : str
            The fault, and how it was repaired.
        pointer : str, optional
            JSON pointer to the fault.
        """
        super().__init__(message, pointer)
        self.pointer = pointer

    def __str__(self) -> str:
        return f"zarr.json#{self.args[1]}: {self.args[0]}"


class NodeNotFoundError(ZarrliteError, KeyError, FileNotFoundError):
    """There is no array or group at the path."""


class NodeExistsError(ZarrliteError, FileExistsError):
    """There is already a node at the path; open it, or pass overwrite=True."""


class DataError(ZarrliteError, ValueError):
    """Stored data is damaged or contradicts its metadata.

    `key` names the stored value, and `codec` the codec that failed on it.
    """

    def __init__(self, message: str, *, key: str | None = None, codec: str | None = None) -> None:
        """Create an error.

        Parameters
        ----------
        message : str
            The reason, without the location.
        key : str or None, optional
            The key of the stored value, if known.
        codec : str or None, optional
            The name of the codec that found the fault, if any.

        Examples
        --------
        >>> print(DataError("has 3 bytes, not 4", key="c/0/1", codec="bytes"))
        chunk c/0/1, codec bytes: has 3 bytes, not 4
        """
        super().__init__(message, key=key, codec=codec)
        self.key, self.codec = key, codec

    def __str__(self) -> str:
        where = ", ".join(p for p in (self.key and f"chunk {self.key}", self.codec and f"codec {self.codec}") if p)
        return f"{where}: {self.message}" if where else self.message

    def at(self, *, key: str | None = None, codec: str | None = None) -> Self:
        """Return the same error, with the key and the codec filled in where they were not known."""
        return type(self)(self.message, key=self.key or key, codec=self.codec or codec)


class ChecksumError(DataError):
    """The checksum does not match: the bytes changed after they were written."""


class TruncatedError(DataError):
    """Stored bytes are shorter or longer than required."""


class ShardError(DataError):
    """The index of a shard is damaged."""


class MissingChunkError(DataError):
    """A chunk is absent and the array was opened with missing_chunks="error"."""


class StoreError(ZarrliteError, OSError):
    """The store failed, or does not support the operation."""


class BucketNotFoundError(StoreError):
    """The bucket or container of an object store does not exist; create it, or correct its name."""


class CredentialsError(StoreError, PermissionError):
    """An object store got no credentials, or wrong ones; set them, or pass `anonymous=True` for public data."""


class AccessError(StoreError, PermissionError):
    """A server refuses access to a value; the owner of the value must grant it."""


class ReadOnlyError(StoreError, PermissionError):
    """The store or the node is open for reading only; open it with mode="r+"."""


class KeyRefusedError(StoreError):
    """The key could escape the store, or the store cannot represent it."""


class SelectionError(ZarrliteError, IndexError):
    """An index is not valid for the array; for example, it is out of bounds."""


# Error names from zarr-python, for `except` clauses. Several of them denote the same class.
BaseZarrError = ZarrliteError
ArrayNotFoundError = GroupNotFoundError = NodeNotFoundError
ChunkNotFoundError = MissingChunkError
UnknownCodecError = PickleCodecDisabledError = UnknownExtensionError
ContainsArrayError = ContainsGroupError = ContainsArrayAndGroupError = NodeExistsError
MetadataValidationError = NodeTypeValidationError = DataTypeValidationError = MetadataError
ArrayIndexError = BoundsCheckError = NegativeStepError = VindexInvalidSelectionError = SelectionError
ZarrUserWarning = MetadataWarning


class ZarrDeprecationWarning(DeprecationWarning):
    """zarr-python's warning about old names; this library does not issue it."""


class ZarrFutureWarning(FutureWarning):
    """zarr-python's warning about future changes; this library does not issue it."""


class ZarrRuntimeWarning(RuntimeWarning):
    """zarr-python's warning about doubtful results; this library does not issue it."""


class UnstableSpecificationWarning(FutureWarning):
    """zarr-python's warning about data types without a specification; this library does not issue it."""
