"""Reads and writes that run while the caller continues.

Rules
- At most as many run at once as the store takes requests (`Limits.concurrency`), all arrays and callers together, or as
  there are cores if requests to the store do not wait. The others wait in the order in which they were submitted.
- There is no event loop: results are futures of the standard library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import Any

from zarrlite import threads
from zarrlite.stores.base import Store, place_of


class AsyncAccess(ABC):
    """Reading and writing of an indexable object on other threads."""

    @abstractmethod
    def _store_of_requests(self) -> Store: ...

    @abstractmethod
    def __getitem__(self, index: Any) -> Any: ...

    @abstractmethod
    def __setitem__(self, index: Any, value: Any) -> None: ...

    def read_async(self, selection: Any = ...) -> Future[Any]:
        """Read a selection on another thread, while the caller continues.

        Parameters
        ----------
        selection : index, optional
            The selection, as between brackets. The default is everything.

        Returns
        -------
        concurrent.futures.Future
            Its result is that of `array[selection]`, or the exception that this raises. A read that has not started
            can be cancelled. `asyncio.wrap_future` makes it awaitable.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", data=[[1, 2], [3, 4]])
        >>> futures = [a.read_async(row) for row in range(2)]
        >>> [future.result() for future in futures]
        [array([1, 2]), array([3, 4])]
        """
        return threads.submit(lambda: self[selection], place_of(self._store_of_requests()))

    def write_async(self, selection: Any, value: Any) -> Future[None]:
        """Write to a selection on another thread, while the caller continues.

        The values must not be changed before the write is done. Writes may run at the same time and in any order, so
        those that overlap must wait for each other.

        Parameters
        ----------
        selection : index
            The selection, as between brackets.
        value : array_like
            The values.

        Returns
        -------
        concurrent.futures.Future
            Its result is None once everything is written, or the exception of `array[selection] = value`. A write that
            has not started can be cancelled.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=4, dtype="int8", chunks=2)
        >>> a.write_async(slice(2, None), 7).result()
        >>> a[...]
        array([0, 0, 7, 7], dtype=int8)
        """
        return threads.submit(lambda: self.__setitem__(selection, value), place_of(self._store_of_requests()))
