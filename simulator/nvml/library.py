"""A stand-in for libnvidia-ml beneath the real pynvml (traps: dependencies.md 3.5).

pynvml calls ``library.nvmlX(handle, byref(out))`` and expects an error code back. Here each such
function is a few lines in ``FUNCTIONS`` that write through the pointer or raise ``Refused``.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pynvml

from simulator.hardware import Card, Instance
from simulator.nvml.world import World

Body = Callable[..., None]
FUNCTIONS: dict[str, Body] = {}
FIRST_ADDRESS = 0x10000
VERSION = re.compile("_v[0-9]+$|V$")


class Refused(Exception):
    """The call answers this NVML error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Target(NamedTuple):
    """What a device handle stands for: a card, or one MIG device on it."""

    card: Card
    instance: Instance | None = None


def function(*names: str) -> Callable[[Body], Body]:
    """Register ``body(library, *arguments)`` as these functions of the library."""

    def register(body: Body) -> Body:
        FUNCTIONS.update(dict.fromkeys(names, body))
        return body

    return register


def device_function(*names: str, on_mig: bool = True) -> Callable[[Body], Body]:
    """Register ``body(library, target, *arguments)``; the handle in front is looked up.

    ``on_mig=False``: not supported on the handle of a MIG device (contracts.md 6.6).
    """

    def register(body: Body) -> Body:
        for name in names:
            FUNCTIONS[name] = _on_device(name, body, on_mig)
        return body

    return register


def _on_device(name: str, body: Body, on_mig: bool) -> Body:
    def called(library: FakeNvml, handle: Any, *arguments: Any) -> None:
        target = library.target(handle)
        if target.instance is None:
            refuse_as_ordered(target.card, name)
        elif not on_mig:
            raise Refused(pynvml.NVML_ERROR_NOT_SUPPORTED)
        body(library, target, *arguments)

    return called


def refuse_as_ordered(card: Card, name: str) -> None:
    """Raise the error that the hardware file orders for this function, all versions or one."""
    code = card.errors.get(name, card.errors.get(VERSION.sub("", name)))
    if code is not None:
        raise Refused(code)


def put(pointer: Any, value: int) -> None:
    """Write a number through ``byref(...)``."""
    pointer._obj.value = value


def number(argument: Any) -> int:
    """pynvml gives integers as int or as c_uint."""
    return int(getattr(argument, "value", argument))


class _Function:
    """Looks like a ctypes function: pynvml sets ``restype`` and ``argtypes`` on it."""

    restype: Any = None
    argtypes: Any = None

    def __init__(self, library: FakeNvml, name: str) -> None:
        self._library = library
        self._name = name

    def __call__(self, *arguments: Any) -> Any:
        return self._library.answer(self._name, arguments)


class FakeNvml:
    """The library. ``init_count`` and ``shutdown_count`` are for C18."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.world = World(path, clock)
        self.init_count = 0
        self.shutdown_count = 0
        self._functions: dict[str, _Function] = {}
        self._objects: dict[int, object] = {}  # what each handle stands for
        self._addresses: dict[object, int] = {}
        self._new_addresses = itertools.count(FIRST_ADDRESS, 16)  # an old one is never given again

    def __getattr__(self, name: str) -> _Function:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return self._functions.setdefault(name, _Function(self, name))

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """What the library's function ``name`` returns: an error code, or text for ErrorString."""
        if name == "nvmlErrorString":
            return f"simulated NVML error {number(arguments[0])}".encode()
        if self.init_count == self.shutdown_count and not name.startswith("nvmlInit"):
            return pynvml.NVML_ERROR_UNINITIALIZED
        body = FUNCTIONS.get(name)
        if body is None:  # what we don't know, this hardware doesn't support
            return pynvml.NVML_ERROR_NOT_SUPPORTED
        try:
            body(self, *arguments)
        except Refused as refused:
            return refused.code
        return pynvml.NVML_SUCCESS

    def put_handle(self, pointer: Any, thing: object) -> None:
        """Write a handle for ``thing`` (a uuid, or any hashable) through ``byref(...)``."""
        handle = pointer._obj
        ctypes.cast(ctypes.byref(handle), ctypes.POINTER(ctypes.c_void_p))[0] = self.address(thing)

    def address(self, thing: object) -> int:
        """The number behind the handle of ``thing``: the same until NVML is shut down."""
        if thing not in self._addresses:
            self._addresses[thing] = address = next(self._new_addresses)
            self._objects[address] = thing
        return self._addresses[thing]

    def thing(self, handle: Any) -> object:
        """What a handle stands for. Raises ``Refused`` for one that we never gave."""
        address = ctypes.cast(handle, ctypes.c_void_p).value
        thing = None if address is None else self._objects.get(address)
        if thing is None:
            raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return thing

    def target(self, handle: Any) -> Target:
        """The card or MIG device of a handle. Raises ``Refused`` when it is lost or destroyed."""
        uuid = self.thing(handle)
        for card in self.world.hardware.cards:
            instances = card.instances if card.mig_current else []
            instance = next((each for each in instances if each.uuid == uuid), None)
            if card.uuid == uuid or instance is not None:
                if card.lost or card.absent:
                    raise Refused(pynvml.NVML_ERROR_GPU_IS_LOST)
                return Target(card, instance)
        raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)  # handles die with their MIG device

    def forget(self, thing: object) -> None:
        """End the handle of ``thing``."""
        del self._objects[self._addresses.pop(thing)]

    def forget_all(self) -> None:
        """The last shutdown ends all handles."""
        self._objects.clear()
        self._addresses.clear()


@function("nvmlInitWithFlags")
def _init(library: FakeNvml, *_: Any) -> None:
    code = library.world.hardware.init_error
    if code is not None:
        raise Refused(code)
    library.init_count += 1


@function("nvmlShutdown")
def _shutdown(library: FakeNvml) -> None:
    library.shutdown_count += 1
    if library.shutdown_count == library.init_count:
        library.forget_all()


@function("nvmlSystemGetDriverVersion")
def _driver_version(library: FakeNvml, buffer: Any, _: Any) -> None:
    buffer.value = library.world.hardware.driver_version.encode()


@function("nvmlSystemGetNVMLVersion")
def _nvml_version(library: FakeNvml, buffer: Any, _: Any) -> None:
    buffer.value = library.world.hardware.nvml_version.encode()


@function("nvmlSystemGetCudaDriverVersion")
def _cuda_version(library: FakeNvml, out: Any) -> None:
    put(out, library.world.hardware.cuda_driver_version)
