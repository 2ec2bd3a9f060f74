"""Kernels: one for each chapter, named as the chapter, started at its first run.

A kernel outlives its page for some minutes, so that whoever follows a link and comes back finds their variables. Each takes up to
half a gigabyte, so there are never more than a few.
"""

import asyncio
import pathlib
import sys

import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import ioloop, web

MOST = 4  # kernels at a time
PATIENCE = 600  # seconds that a kernel without a page is kept


class ThisPython(KernelSpecManager):
    """Knows one command, whatever kernels the machine has: the interpreter that runs the server, without the reader's own
    settings of IPython.
    """

    def __init__(self, chapters, folder, **kwargs):
        super().__init__(**kwargs)
        self._chapters = chapters
        self._settings = str(pathlib.Path(folder) / "ipython")

    def get_kernel_spec(self, kernel_name):
        if kernel_name not in self._chapters:
            raise NoSuchKernel(kernel_name)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        command += ["--IPKernelApp.exec_PYTHONSTARTUP=False"]
        return KernelSpec(
            argv=command,
            display_name=kernel_name,
            language="python",
            env={"IPYTHONDIR": self._settings},
            metadata={"supported_encryption": ["curve"]},
        )


class Kernels(AsyncMappingKernelManager):
    """The kernels of all chapters that are open."""

    def __init__(self, chapters, folder):
        # What a kernel prints while no page listens is dropped: it could be without end.
        super().__init__(
            kernel_spec_manager=ThisPython(chapters, folder),
            connection_dir=str(folder),
            buffer_offline_messages=False,
            transport_encryption="required",  # any user of the machine can connect to a kernel's ports
            context=zmq.asyncio.Context.instance(),  # one of its own would be waited for at the end, perhaps forever
        )
        self._chapters = chapters
        self._one_at_a_time = asyncio.Lock()
        self._leaving = {}
        self._closed = False

    async def start_kernel(self, *, kernel_name=None, **ignored):
        """The id of the chapter's kernel, which is started if it does not run yet."""
        if kernel_name not in self._chapters:
            raise web.HTTPError(404, f"the book has no chapter {kernel_name!r}")
        async with self._one_at_a_time:
            if self._closed:
                raise web.HTTPError(503, "the server ends")
            for kernel_id in self.list_kernel_ids():
                if self.get_kernel(kernel_id).kernel_name == kernel_name:
                    return kernel_id
            if len(self) >= MOST:
                await self._make_room()
            kernel_id = await super().start_kernel(kernel_name=kernel_name)
            self._wait(kernel_id)  # perhaps its page is closed already
            return kernel_id

    async def _make_room(self):
        left = [each for each in self.list_kernel_ids() if self._kernel_connections.get(each, 0) <= 0]
        if not left:
            open_chapters = ", ".join(
                sorted(self.get_kernel(each).kernel_name for each in self.list_kernel_ids())
            )
            raise web.HTTPError(
                409, f"{MOST} chapters are running ({open_chapters}). Close one of their pages first."
            )
        await self.shutdown_kernel(min(left, key=lambda each: self.get_kernel(each).last_activity), now=True)

    def notify_connect(self, kernel_id):
        super().notify_connect(kernel_id)
        if waiting := self._leaving.pop(kernel_id, None):
            ioloop.IOLoop.current().remove_timeout(waiting)

    def notify_disconnect(self, kernel_id):
        super().notify_disconnect(kernel_id)
        self._wait(kernel_id)

    def _wait(self, kernel_id):
        if kernel_id not in self._leaving and self._alone(kernel_id):
            self._leaving[kernel_id] = ioloop.IOLoop.current().call_later(PATIENCE, self._end, kernel_id)

    def _alone(self, kernel_id):
        return kernel_id in self and self._kernel_connections.get(kernel_id, 0) <= 0

    async def _end(self, kernel_id):
        self._leaving.pop(kernel_id, None)
        async with self._one_at_a_time:
            if self._alone(kernel_id):
                await self.shutdown_kernel(kernel_id, now=True)

    async def end(self):
        """Ends all of them, also one that starts just now; no other starts from then on."""
        self._closed = True
        async with self._one_at_a_time:
            for kernel_id in self.list_kernel_ids():
                for _ in range(100):
                    if kernel_id not in self:
                        break
                    try:
                        await self.shutdown_kernel(kernel_id, now=True)
                    except (
                        asyncio.InvalidStateError,
                        web.HTTPError,
                    ):  # just about to start anew, or gone meanwhile
                        await asyncio.sleep(0.1)
