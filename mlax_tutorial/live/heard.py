"""What a kernel says of its last run, kept for the page that connects while it runs: one that was loaded anew, or a second window."""

import json

from jupyter_client.session import Session

MOST = 1_000_000  # bytes of what a run puts out; a page shows less


class Heard:
    """Listens to a kernel."""

    def __init__(self, kernel):
        self.ran = {}  # the cells that have run, each with whether it came to its end
        self._session = Session(config=kernel.session.config, key=kernel.session.key)
        self._forget("")
        self._stream = kernel.connect_iopub()
        self._stream.on_recv(self._hear)

    def close(self):
        if not self._stream.closed():
            self._stream.close()

    def _forget(self, run):
        self._run, self._messages, self._bytes = run, [], 0
        self._busy = self._failed = False

    def _hear(self, parts):
        _, parts = self._session.feed_identities(parts)
        message = self._session.deserialize(parts, content=False)
        kind, parent = message["header"]["msg_type"], message["parent_header"] or {}
        content = bytes(message["content"])
        if (
            kind == "status" and json.loads(content)["execution_state"] == "starting"
        ):  # another process, which knows nothing
            self.ran = {}
            self._forget("")
        run = parent.get("msg_id", "")
        # A request that belongs to a cell of a page has the cell's id behind its own.
        if parent.get("msg_type") != "execute_request":
            return
        if run != self._run:
            self._forget(run)
        if kind == "status":
            self._busy = json.loads(content)["execution_state"] == "busy"
        elif kind == "error":
            self._failed = True
        if kind in ("status", "error", "execute_input") or self._bytes + len(content) <= MOST:
            self._messages.append((message["header"], parent, content))
        if kind not in ("status", "error", "execute_input"):
            self._bytes += len(content)
        _, _, cell = run.partition(".")
        if cell and not self._busy and len(self._messages) > 2:  # more than busy and idle: it was run
            self.ran[cell] = not self._failed

    def told(self):
        """For a page: which cells have run to their end, what runs now, and what it has said so far."""
        keep = ("msg_id", "msg_type", "session", "date")
        messages = [
            {
                "header": {key: str(header[key]) for key in keep},
                "parent_header": {key: str(parent[key]) for key in keep if key in parent},
                "content": json.loads(content),
            }
            for header, parent, content in (self._messages if self._busy else [])
        ]
        ran = [cell for cell, well in self.ran.items() if well]
        return {"ran": ran, "running": self._run if self._busy else "", "messages": messages}
