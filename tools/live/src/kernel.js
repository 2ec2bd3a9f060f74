// The kernel of a chapter, on this very server.

import { KernelAPI, KernelConnection, KernelMessage } from "@jupyterlab/services/lib/kernel";
import { ServerConnection } from "@jupyterlab/services/lib/serverconnection";

// What runs code asks for this key. The page that was opened with the token brings it, and it stays with this very address and port.
let { key } = document.currentScript.dataset;
try {
  if (key) localStorage.setItem("live:key", key);
  else key = localStorage.getItem("live:key") ?? "";
} catch { /* then cells run on the page that was opened with the token, and on no other */ }

const settings = ServerConnection.makeSettings({
  baseUrl: `${location.origin}/`,
  wsUrl: `${location.origin.replace(/^http/, "ws")}/`,
  token: key,
  appendToken: true,
});

const FOUND_OUT = 30_000; // milliseconds that a question about a name may take

// On each connection the library asks the kernel what it is, and hears no refusal. A restart cancels a request that is under
// way; the connection that follows asks again.
class Connection extends KernelConnection {
  async requestKernelInfo() {
    try {
      return await super.requestKernelInfo();
    } catch (error) {
      if (!error.message.startsWith("Canceled future for ")) throw error;
    }
  }
}

// A request names its cell, so that every page of the chapter knows whose output it hears.
const name = (cell) => `${crypto.randomUUID()}${cell ? `.${cell}` : ""}`;
const cellOf = ({ msg_id: id }) => /\.(.+)/.exec(id ?? "")?.[1];

export class Kernel {
  // `told` is called with each new state: none, starting, idle, busy, restarting, died (and started anew), dead, cut off.
  // `overheard` is called with the id of a cell and each message of a run that this page did not ask for: it was begun in another
  // window, or before the page was loaded anew. `met` is called with the cells that have run, as the server remembers them.
  constructor(chapter, { told, overheard, met }) {
    Object.assign(this, { chapter, told, overheard, met });
    this.state = "none";
    this.futures = new Map(); // the runs that this page waits for
    this.another = false; // whether the kernel is busy with a run that this page did not ask for
  }

  get id() {
    return this.connection?.id;
  }

  become(state) {
    if (state === this.state) return;
    this.state = state;
    this.told(state);
  }

  // Connects to the chapter's kernel if it runs already, from an earlier visit or in another window.
  find() {
    return this.finding = this.#find();
  }

  async #find() {
    const running = (await KernelAPI.listRunning(settings)).find((each) => each.name === this.chapter);
    if (running) this.connect(running);
    return Boolean(running);
  }

  async start() {
    await this.finding?.catch(() => {}); // or there would be two connections
    if (this.connection) return;
    this.become("starting");
    try {
      this.connect(await KernelAPI.startNew({ name: this.chapter }, settings));
      await this.ready;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  connect(model) {
    const connection = new Connection({ model, serverSettings: settings, handleComms: false });
    this.connection = connection;
    // A kernel that runs a cell answers nothing before the cell has ended.
    this.become(model.execution_state === "busy" ? "busy" : "starting");
    connection.statusChanged.connect((sender, status) => {
      if (status === "restarting") this.become("restarting");
      else if (status === "autorestarting") this.become("died");
      else if (status === "dead") this.leave("dead");
    });
    connection.iopubMessage.connect((sender, message) => this.#hear(message));
    let first = true;
    this.ready = new Promise((resolve, reject) => {
      connection.disposed.connect(() => reject(new Error("the kernel is gone")));
      connection.connectionStatusChanged.connect(async (sender, status) => {
        if (status === "connected") {
          const back = !this.renewing && (first || this.state === "cut off");
          first = false;
          if (back) await this.#meet(connection);
          if (this.state === "busy") resolve();
          else connection.info.then(resolve, reject);
        } else if (!first && !this.renewing && !["restarting", "died"].includes(this.state)) this.become("cut off");
      });
    });
    this.ready.catch(() => {}); // whoever waits for it hears of it
  }

  // Asks the server what ran and what runs: a page that connects late has missed it.
  async #meet(connection) {
    const held = this.held = [];
    const known = await ask(`/live/heard/${connection.id}`, { Authorization: `token ${key}` }).catch(() => null);
    if (this.connection !== connection) return;
    const before = new Set();
    if (known) {
      this.met(known.ran);
      for (const message of known.messages) {
        before.add(message.header.msg_id);
        if (!this.#own(message)) this.#tell(message);
      }
      this.another = known.running && !this.futures.has(known.running);
      this.become(known.running ? "busy" : "starting");
      // What ended while the server was out of reach has told nobody.
      for (const [id, future] of this.futures) if (this.begun === id && id !== known.running) future.dispose();
    } else if (this.state === "cut off") this.become("starting");
    this.held = null;
    for (const message of held) if (!before.has(message.header.msg_id)) this.#hear(message);
    if (this.state === "starting") connection.requestKernelInfo().catch(() => {}); // the answer says that it is idle
  }

  #own({ parent_header: parent }) {
    return parent?.session === this.connection?.clientId;
  }

  // Requests other than for a run, as those of a second window that connects, make no kernel busy.
  #hear(message) {
    if (this.held) return void this.held.push(message);
    const { header, parent_header: parent, content } = message, run = parent?.msg_type === "execute_request";
    if (header.msg_type === "status") {
      if (run && content.execution_state === "busy") this.begun = parent.msg_id;
      if (run) this.another = content.execution_state === "busy" && !this.#own(message);
      if (this.renewing) return;
      if (content.execution_state === "busy" && run) this.become("busy");
      else if (content.execution_state === "idle" && (run || ["starting", "restarting", "died"].includes(this.state))) this.become("idle");
      else if (content.execution_state === "starting" && ["idle", "busy"].includes(this.state)) { // restarted in another window
        this.become("restarting");
        this.connection.requestKernelInfo().catch(() => {});
      }
    }
    if (run && !this.#own(message)) this.#tell(message);
  }

  #tell(message) {
    const cell = cellOf(message.parent_header);
    if (cell) this.overheard(cell, message);
  }

  leave(state = "none") {
    const connection = this.connection;
    this.connection = this.held = null;
    connection?.dispose();
    this.become(state);
  }

  #request(type, content, cell) {
    const { connection } = this;
    const message = KernelMessage.createMessage({
      msgType: type, channel: "shell", session: connection.clientId, msgId: name(cell), content,
    });
    return connection.sendShellMessage(message, true);
  }

  // Runs code and gives the kernel's reply; `heard` gets each message of output. Rejected if the kernel is lost meanwhile.
  async run(code, { heard, cell } = {}) {
    const future = this.#request("execute_request", {
      code, silent: false, store_history: Boolean(heard), user_expressions: {}, allow_stdin: false, stop_on_error: false,
    }, cell);
    const { msg_id: id } = future.msg.header;
    this.futures.set(id, future);
    if (heard) future.onIOPub = heard;
    try {
      return (await future.done).content;
    } finally {
      this.futures.delete(id);
    }
  }

  // What the kernel knows of the name at a place of some code: `complete_request` or `inspect_request`. Null if it does not run, is
  // busy, or knows nothing.
  async know(type, code, cursor) {
    if (this.state !== "idle") return null;
    const future = this.#request(type, { code, cursor_pos: [...code.slice(0, cursor)].length, ...(type === "inspect_request" && { detail_level: 0 }) });
    const late = new Promise((resolve) => { setTimeout(resolve, FOUND_OUT, null); });
    const reply = await Promise.race([future.done.catch(() => null), late]);
    return reply?.content.status === "ok" ? reply.content : null;
  }

  interrupt() {
    return this.connection?.interrupt();
  }

  // What is heard before the connection is made anew may come from the kernel that ends.
  async restart() {
    const { connection } = this;
    if (!connection) return;
    this.renewing = true;
    try {
      await connection.restart();
    } finally {
      this.renewing = false;
    }
    connection.requestKernelInfo().catch(() => {}); // the answer says that it is idle
  }
}

// Why a request failed.
export const reason = (error) => (error.response?.status === 403
  ? "the server was started anew. Open the address that it printed." : error.message);

export const ask = async (path, headers = {}) => {
  const answer = await fetch(path, { headers });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
};
