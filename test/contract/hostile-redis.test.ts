import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { connectorFor } from "../../src/store/redis/dial.js";

describe("a server that says its replies are endless", () => {
  it.each([
    "$536870911\r\nabc",
    "*1000000000\r\n:1\r\n",
    "*33554000\r\n".repeat(4),
    // What the library reads otherwise than it says.
    "_xx*33554000\r\n",
    "+\rX*33554000\r\n",
    "$-1xx*33554000\r\n",
  ])("is hung up on before the library reads any of it: %j", async (reply) => {
    const server = createServer((peer) => {
      peer.on("error", () => {});
      peer.write("+OK\r\n");
      peer.once("data", () => peer.write(reply));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it has a port");
    const { port } = address;
    const place = { kind: "tcp", host: "127.0.0.1", port, isTls: false } as const;
    const Connector = connectorFor({ address: place, connectMs: 5_000 });
    const socket = await new Connector().connect(() => {});
    const read: string[] = [];
    socket.on("data", (bytes) => {
      read.push(String(bytes));
      socket.write("next");
    });
    const failed = new Promise((resolve) => socket.once("error", resolve));
    await expect(failed).resolves.toMatchObject({ code: "STORE_PROTOCOL" });
    expect(read).toEqual(["+OK\r\n"]);
    server.close();
  });
});
