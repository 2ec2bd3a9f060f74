// The kernel of a chapter, on this very server.

import { KernelAPI, KernelConnection } from "@jupyterlab/services/lib/kernel";
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

const STATES = { idle: "idle", busy: "busy", restarting: "restarting", autorestarting: "died", dead: "dead" };

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

export class Kernel {
  // `told` is called with each new state: none, starting, idle, busy, restarting, died (and started anew), dead, cut off.
  constructor(chapter, told) {
    this.chapter = chapter;
    this.state = "none";
    this.told = told;
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
      await this.connection.info;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  connect(model) {
    const connection = new Connection({ model, serverSettings: settings, handleComms: false });
    this.connection = connection;
    this.become("starting");
    connection.statusChanged.connect((sender, status) => {
      this.become(STATES[status] ?? "starting");
      if (status === "dead") this.leave("dead");
    });
    let met = false;
    connection.connectionStatusChanged.connect((sender, status) => {
      if (status === "connected") {
        if (this.state === "cut off") this.become(STATES[connection.status] ?? "starting");
        met = true;
      } else if (met && !["restarting", "died"].includes(this.state)) this.become("cut off");
    });
  }

  leave(state = "none") {
    const connection = this.connection;
    this.connection = null;
    connection?.dispose();
    this.become(state);
  }

  // Runs code and gives the kernel's reply; `heard` gets each message of output. Rejected if the kernel is lost meanwhile.
  async run(code, heard) {
    const future = this.connection.requestExecute({ code, allow_stdin: false, store_history: Boolean(heard) });
    if (heard) future.onIOPub = heard;
    return (await future.done).content;
  }

  interrupt() {
    return this.connection?.interrupt();
  }

  async restart() {
    await this.connection?.restart();
  }
}

// Why a request failed.
export const reason = (error) => (error.response?.status === 403
  ? "the server was started anew. Open the address that it printed." : error.message);

export const ask = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
};
