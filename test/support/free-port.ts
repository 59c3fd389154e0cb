import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below what systems hand to outgoing connections, so that nobody takes a port between two starts.
 */
const portMin = 12_000;
const portMax = 31_000;
const triesMax = 100;

/**
 * A port of 127.0.0.1 that nobody listens on, for a server that is started, killed and restarted.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const port = randomInt(portMin, portMax);
    if (await canListen(port)) return port;
  }
  throw new Error("no free port found");
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
