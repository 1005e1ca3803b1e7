"""Reads and writes that run in other threads while the caller continues.

Rules
- At most `Limits.concurrency` of them run at the same time for a store, regardless of which arrays and callers they
  belong to. For a store in memory or on a local disk, the limit is the number of cores. Further calls wait in the order
  in which they were submitted.
- There is no event loop: results are futures from the standard library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from zarrlite import threads
from zarrlite.stores.base import Store, place_of

if TYPE_CHECKING:
    from concurrent.futures import Future


class AsyncAccess(ABC):
    """An indexable object that can be read and written on other threads."""

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
            The selection, as in `array[selection]`. The default selects everything.

        Returns
        -------
        concurrent.futures.Future
            A future with the result of `array[selection]`, or with the exception that the read raises. A read that has
            not started can be cancelled. `asyncio.wrap_future` makes the future awaitable.

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
        wait for one write before you submit another that overlaps with it.

        Parameters
        ----------
        selection : index
            The selection, as in `array[selection]`.
        value : array_like
            The values.

        Returns
        -------
        concurrent.futures.Future
            A future with the result None once everything is written, or with the exception that the write raises. A
            write that has not started can be cancelled.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=4, dtype="int8", chunks=2)
        >>> a.write_async(slice(2, None), 7).result()
        >>> a[...]
        array([0, 0, 7, 7], dtype=int8)
        """
        return threads.submit(lambda: self.__setitem__(selection, value), place_of(self._store_of_requests()))
