"""Kernels: one for each chapter, named as the chapter, started at its first run.

A kernel outlives its page for some minutes, so that whoever follows a link and comes back finds their variables. Each takes up to
half a gigabyte, so there are never more than a few.
"""

import asyncio
import contextlib
import os
import pathlib
import secrets
import sys

import psutil
import zmq
import zmq.asyncio
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import ioloop, web
from traitlets.config import Config

from mlax_tutorial.live.heard import Heard

MOST = 4  # kernels at a time
PATIENCE = 600  # seconds that a kernel without a page is kept
# A kernel that prints faster than it is heard waits. Else ZeroMQ drops what does not fit, perhaps the word that the cell has ended,
# and the page waits for it without end.
WAITS = "(lambda out: out.schedule(lambda: out.socket.setsockopt({option}, 1)))(get_ipython().kernel.iopub_thread)"
MARK = "MLAX_TUTORIAL_KERNEL"  # all that a kernel starts inherits it, also what leaves its process group


class ThisPython(KernelSpecManager):
    """Knows one command, whatever kernels the machine has: the interpreter that runs the server, without the reader's own
    settings of IPython.
    """

    def __init__(self, chapters, folder, mark, **kwargs):
        super().__init__(**kwargs)
        self._chapters = chapters
        self._settings = str(pathlib.Path(folder) / "ipython")
        self._mark = mark

    def get_kernel_spec(self, kernel_name):
        if kernel_name not in self._chapters:
            raise NoSuchKernel(kernel_name)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        command += ["--IPKernelApp.exec_PYTHONSTARTUP=False"]
        command += [f"--IPKernelApp.exec_lines={WAITS.format(option=int(zmq.XPUB_NODROP))}"]
        own = {"IPYTHONDIR": self._settings, MARK: f"{self._mark}/{kernel_name}"}
        checkout = pathlib.Path(__file__).parents[2]
        if (
            checkout / "_toc.yml"
        ).is_file():  # the kernel works elsewhere, and finds the package also where it is not installed
            own["PYTHONPATH"] = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))
        return KernelSpec(
            argv=command,
            display_name=kernel_name,
            language="python",
            env=own,
            metadata={"supported_encryption": ["curve"]},
        )


def _transport(folder) -> str:
    """How kernels are reached: by sockets in `folder`, where the system has such and their paths are short enough for it (macOS: 103
    bytes). Ports that were free when they were looked for may be taken when the kernel binds them.
    """
    longest = pathlib.Path(folder, "kernel-00000000-0000-0000-0000-000000000000-ipc-5")
    return "ipc" if os.name == "posix" and len(os.fsencode(longest)) < 104 else "tcp"


class Kernels(AsyncMappingKernelManager):
    """The kernels of all chapters that are open."""

    def __init__(self, chapters, folder):
        # What a kernel prints while no page listens is not kept for the page that comes: it could be without end. Of the last run
        # `Heard` keeps as much as a page shows.
        self._mark = secrets.token_hex(16)
        super().__init__(
            kernel_spec_manager=ThisPython(chapters, folder, self._mark),
            connection_dir=str(folder),
            buffer_offline_messages=False,
            config=Config({"ConnectionFileMixin": {"transport": _transport(folder)}}),
            transport_encryption="required",  # any user of the machine can connect to a kernel's ports
            context=zmq.asyncio.Context.instance(),  # one of its own would be waited for at the end, perhaps forever
        )
        self._chapters = chapters
        self._work = pathlib.Path(folder) / "work"
        self._heard = {}
        self.ended = {}  # why the kernel of a chapter is gone, in words
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
            work = self._work / kernel_name
            work.mkdir(parents=True, exist_ok=True)
            kernel_id = await super().start_kernel(kernel_name=kernel_name, cwd=str(work))
            self.ended.pop(kernel_name, None)
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
        oldest = min(left, key=lambda each: self.get_kernel(each).last_activity)
        self.ended[self.get_kernel(oldest).kernel_name] = (
            f"The kernel was ended, and its variables are gone: {MOST} chapters run at a time, and another one was opened."
        )
        await self.shutdown_kernel(oldest, now=True)

    def heard(self, kernel_id):
        """What the kernel has said of its last run."""
        return self._heard[kernel_id]

    def start_watching_activity(self, kernel_id):
        super().start_watching_activity(kernel_id)
        self._heard[kernel_id] = Heard(self.get_kernel(kernel_id))

    def stop_watching_activity(self, kernel_id):
        super().stop_watching_activity(kernel_id)
        if heard := self._heard.pop(kernel_id, None):
            heard.close()

    async def shutdown_kernel(self, kernel_id, now=False, restart=False):
        """Ends a kernel and all that it has started."""
        self._check_kernel_id(kernel_id)
        kernel = self.get_kernel(kernel_id)
        started = _descendants(getattr(getattr(kernel, "provisioner", None), "pid", None))
        await super().shutdown_kernel(kernel_id, now=now, restart=restart)
        _kill(started)
        if not restart:
            await self._sweep(f"{self._mark}/{kernel.kernel_name}")

    async def _sweep(self, mark):
        """Ends the processes with this mark, also those that they start meanwhile."""
        for _ in range(20):
            if not _kill(each for each in psutil.process_iter() if _marked(each, mark)):
                break
            await asyncio.sleep(0.05)

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
                self.ended[self.get_kernel(kernel_id).kernel_name] = (
                    f"The kernel was ended, and its variables are gone: no page of the chapter was open for {PATIENCE // 60} minutes."
                )
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
        await self._sweep(self._mark)


def _descendants(pid):
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True) if pid else []
    return []


def _marked(process, mark):
    with contextlib.suppress(psutil.Error, OSError):
        given = process.environ().get(MARK, "")
        return (given == mark or given.startswith(f"{mark}/")) and process.pid != os.getpid()
    return False


def _kill(processes):
    """How many of them there were."""
    count = 0
    for each in processes:
        with contextlib.suppress(psutil.Error):
            if each.status() != psutil.STATUS_ZOMBIE:
                each.kill()
                count += 1
    return count
