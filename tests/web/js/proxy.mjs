// A network that can fail: a proxy between the page and a gateway that cuts connections, or lets them stall without an end.

import net from "node:net";

export class Proxy {
  /** @param {string} target such as `http://127.0.0.1:8080` */
  static async start(target) {
    const proxy = new Proxy(new URL(target));
    await new Promise((resolve) => proxy._server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  constructor(target) {
    this._target = target;
    this._pairs = new Set();
    this.isDown = false;
    /** How many connections there were at the same time, at most. */
    this.most = 0;
    this.opened = 0;
    this._server = net.createServer((near) => this._connected(near));
  }

  get origin() {
    return `http://127.0.0.1:${this._server.address().port}`;
  }

  /** End all connections, as when a network changes. */
  cut() {
    for (const [near, far] of [...this._pairs]) {
      near.destroy();
      far.destroy();
    }
  }

  /** Let nothing through any more on the connections that there are, without an end: as when a phone was asleep. */
  stall() {
    for (const [near, far] of this._pairs) {
      near.unpipe(far);
      far.unpipe(near);
      near.on("data", () => {});
      far.on("data", () => {});
    }
  }

  close() {
    this.cut();
    this._server.close();
  }

  _connected(near) {
    if (this.isDown) {
      near.destroy();
      return;
    }
    const far = net.connect(Number(this._target.port), this._target.hostname);
    const pair = [near, far];
    this._pairs.add(pair);
    this.opened++;
    this.most = Math.max(this.most, this._pairs.size);
    near.pipe(far);
    far.pipe(near);
    for (const [one, other] of [pair, [far, near]]) {
      one.on("error", () => {});
      one.on("close", () => {
        other.destroy();
        this._pairs.delete(pair);
      });
    }
  }
}
