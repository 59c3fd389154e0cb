import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { connect } from "node:net";

/** Channel for the packets of one flush. */
interface StatsdChannel {
  /** Resolves when the packet was sent, which does not confirm its arrival. */
  send(packet: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** Address of a receiver. */
export interface StatsdPlace {
  readonly protocol: "tcp" | "udp";
  readonly host: string;
  readonly port: number;
}

/**
 * Opens a channel for one flush. The name is looked up each time, so that a receiver that has moved
 * is found, and no state needs repair after a failure.
 *
 * @param signal that ends all waits
 */
export function openStatsdChannel(
  { protocol, host, port }: StatsdPlace,
  signal: AbortSignal,
): Promise<StatsdChannel> {
  return protocol === "udp" ? openUdp({ host, port }, signal) : openTcp({ host, port }, signal);
}

type Place = Omit<StatsdPlace, "protocol">;

async function openUdp({ host, port }: Place, signal: AbortSignal): Promise<StatsdChannel> {
  const { address, family } = await Promise.race([lookup(host), aborted(signal)]);
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  socket.unref();
  // Network errors of earlier packets have no caller to report to.
  socket.on("error", () => {});
  let isOpen = true;
  const close = (): void => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  signal.addEventListener("abort", close, { once: true });
  return {
    send: (packet) =>
      new Promise((resolve, reject) => {
        socket.send(packet, port, address, (error) => (error ? reject(error) : resolve()));
      }),
    close: async () => {
      signal.removeEventListener("abort", close);
      close();
    },
  };
}

/** Rejects when the signal is aborted. Never resolves. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason);
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}

async function openTcp({ host, port }: Place, signal: AbortSignal): Promise<StatsdChannel> {
  const socket = connect({ host, port, signal });
  socket.unref();
  let failure: Error | undefined;
  socket.on("error", (error) => {
    failure = error;
  });
  // Receivers do not answer. Reading and dropping any data detects the end of the connection.
  socket.resume();
  /** Rejects if the connection ends before the action is done. */
  const untilDone = (act: (done: (error?: unknown) => void) => void): Promise<void> =>
    new Promise((resolve, reject) => {
      const onClose = (): void => reject(failure ?? new Error("the connection ended"));
      if (socket.destroyed) onClose();
      socket.once("close", onClose);
      act((error) => {
        socket.off("close", onClose);
        if (error) reject(error);
        else resolve();
      });
    });
  await untilDone((done) => socket.once("connect", () => done()));
  return {
    send: (packet) => untilDone((done) => socket.write(packet, done)),
    close: async () => {
      await untilDone((done) => socket.end(() => done())).finally(() => socket.destroy());
    },
  };
}
