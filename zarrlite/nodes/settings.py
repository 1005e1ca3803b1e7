"""`zarrlite.config`: process-wide settings, named as in zarr-python.

Rules
- A setting that would have no effect is refused. Everything else is configured by arguments of functions, not here.
- Nodes read `array.*` when they are opened or created; later changes do not affect them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, TextIO, overload

from zarrlite import threads
from zarrlite.chunks.chunk_cache import ChunkCache
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.errors import ArgumentError


class Setting(NamedTuple):
    """The default of a setting, and the values that it accepts."""

    default: Any
    check: Callable[[Any], bool]
    expected: str


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


SETTINGS = {
    "array.order": Setting("C", lambda value: value in ("C", "F"), "'C' or 'F', the memory order of results"),
    "array.write_empty_chunks": Setting(False, lambda value: isinstance(value, bool), "True or False"),
    "async.concurrency": Setting(None, _is_count, "a positive number of requests, or None for the limit of each store"),
    "default_zarr_format": Setting(3, lambda value: value == 3, "3: zarrlite writes only Zarr version 3"),
    "threading.max_workers": Setting(None, _is_count, "a positive number of threads, or None for all cores"),
}


class Configuration:
    """The process-wide settings: `zarrlite.config`.

    The settings are `array.order` and `array.write_empty_chunks`, the defaults for arrays that are opened or created;
    `threading.max_workers`, the maximum number of threads that encode and decode; `async.concurrency`, the maximum
    number of simultaneous requests to one store; and `default_zarr_format`, which is always 3.

    Examples
    --------
    >>> import zarrlite
    >>> with zarrlite.config.set({"array.order": "F"}):
    ...     a = zarrlite.zeros((2, 2))
    >>> a.order, zarrlite.config.get("array.order")
    ('F', 'C')
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}

    @overload
    def get(self, key: Literal["array.order"]) -> Literal["C", "F"]: ...

    @overload
    def get(self, key: Literal["array.write_empty_chunks"]) -> bool: ...

    @overload
    def get(self, key: Literal["async.concurrency", "threading.max_workers"]) -> int | None: ...

    @overload
    def get(self, key: Literal["default_zarr_format"]) -> Literal[3]: ...

    @overload
    def get(self, key: str) -> Any: ...

    def get(self, key: str) -> Any:
        """Return a setting, or all settings with a prefix such as "array".

        Parameters
        ----------
        key : str
            The name of the setting.

        Returns
        -------
        object
            The value, or a dictionary for a prefix.

        Raises
        ------
        ArgumentError
            If there is no such setting.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.config.get("array")
        {'order': 'C', 'write_empty_chunks': False}
        """
        below = {name[len(key) + 1 :]: value for name, value in self._values.items() if name.startswith(f"{key}.")}
        return below or self._values[_known(key)]

    def set(self, settings: Mapping[str, Any]) -> Changed:
        """Change settings, for the rest of the process or for a `with` statement.

        Parameters
        ----------
        settings : mapping
            New values by name: `{"array.order": "F"}` or `{"array": {"order": "F"}}`.

        Returns
        -------
        Changed
            A context manager that restores the old values.

        Raises
        ------
        ArgumentError
            If there is no such setting, or a value is invalid. Nothing is changed.

        Examples
        --------
        >>> import zarrlite
        >>> with zarrlite.config.set({"threading.max_workers": 1}):
        ...     zarrlite.config.get("threading.max_workers")
        1
        """
        new = _flat(settings)
        for key, value in new.items():
            setting = SETTINGS[_known(key)]
            if not setting.check(value):
                raise ArgumentError(f"{key} must be {setting.expected}, not {value!r}")
        old = {key: self._values[key] for key in new}
        self._update(new)
        return Changed(self, old)

    def reset(self) -> None:
        """Reset all settings to their defaults.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.config.reset()
        """
        self._update({name: setting.default for name, setting in SETTINGS.items()})

    def pprint(self, stream: TextIO | None = None, width: int = 80) -> None:
        """Print the settings.

        Parameters
        ----------
        stream : file, optional
            The target; standard output if omitted.
        width : int, optional
            The maximum number of characters in a line.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.config.pprint(width=40)
        {'array.order': 'C',
         'array.write_empty_chunks': False,
         'async.concurrency': None,
         'default_zarr_format': 3,
         'threading.max_workers': None}
        """
        import pprint  # imported here: keeps `import zarrlite` light

        pprint.pprint(self._values, stream=stream, width=width)

    def _update(self, new: Mapping[str, Any]) -> None:
        self._values = {**self._values, **new}
        threads.limit(self._values["threading.max_workers"], self._values["async.concurrency"])


class Changed:
    """A context manager that restores settings on exit, as returned by `Configuration.set`.

    Parameters
    ----------
    configuration : Configuration
        The settings.
    old : mapping
        The values to restore.
    """

    def __init__(self, configuration: Configuration, old: Mapping[str, Any]) -> None:
        self._configuration = configuration
        self._old = old

    def __enter__(self) -> Configuration:
        return self._configuration

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._configuration._update(self._old)


def _known(key: str) -> str:
    if key not in SETTINGS:
        raise ArgumentError(f"zarrlite has no setting {key!r}; the settings are {', '.join(SETTINGS)}")
    return key


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings into a dictionary keyed by their full names."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value})
    return flat


config = Configuration()


def array_options(
    missing_chunks: Literal["fill", "error"] = "fill",
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    cache: ChunkCache | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ArrayOptions:
    """Return the runtime options of a node.

    `config` supplies the memory order. It also supplies `write_empty_chunks` if the argument is None.
    """
    values = config._values
    if write_empty_chunks is None:
        write_empty_chunks = values["array.write_empty_chunks"]
    return ArrayOptions(
        missing_chunks, write_empty_chunks, max_chunk_bytes, cache, progress, order=values["array.order"]
    )
