import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";

/**
 * Below what systems hand to outgoing connections, so that nobody takes a port between two starts.
 */
const portMin = 12_000;
const portMax = 31_000;

/** Ports of one block: its first, which is the lease, and those that the holder hands out. */
const blockSize = 32;
const blockCount = Math.floor((portMax - portMin) / blockSize);

/**
 * Ports that no other process of tests hands out meanwhile. They come in blocks; who listens on the
 * first port of a block has it. The system ends that when a process ends, however it ends, so no
 * lease of a dead process is left to clear away.
 */
class PortPool {
  #port = 0;
  #blockEnd = 0;
  /** The last port that was asked for: one is chosen after the other. */
  #last: Promise<number> = Promise.resolve(0);

  /** One that nobody listens on, and that this pool answers only once. */
  take(): Promise<number> {
    const next = this.#last.then(() => this.#next());
    this.#last = next.catch(() => 0);
    return next;
  }

  async #next(): Promise<number> {
    for (;;) {
      if (this.#port === this.#blockEnd) await this.#leaseBlock();
      const port = this.#port;
      this.#port += 1;
      const server = await listen(port);
      if (server === undefined) continue;
      await new Promise((resolve) => server.close(resolve));
      return port;
    }
  }

  async #leaseBlock(): Promise<void> {
    const first = randomInt(blockCount);
    for (let tries = 0; tries < blockCount; tries += 1) {
      const lease = portMin + ((first + tries) % blockCount) * blockSize;
      const server = await listen(lease);
      if (server === undefined) continue;
      // Held until the process ends, and no reason for it to go on.
      server.unref();
      this.#port = lease + 1;
      this.#blockEnd = lease + blockSize;
      return;
    }
    throw new Error(`all blocks from ${portMin} to ${portMax} are taken`);
  }
}

const pool = new PortPool();

/**
 * A port of 127.0.0.1 that nobody listens on, for a server that is started, killed and restarted.
 */
export function freePort(): Promise<number> {
  return pool.take();
}

/** A server that listens there; undefined when somebody else does. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
