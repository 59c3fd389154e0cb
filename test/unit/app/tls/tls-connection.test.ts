import { type AddressInfo, createServer as createNetServer } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { TlsConnection } from "../../../../src/app/tls/tls-connection.js";
import { TestAuthority } from "../../../support/certificates.js";
import { waitFor } from "../../../support/wait.js";

const authority = new TestAuthority();
const { certificate: cert, key } = authority.issue({ names: ["headgate.shop"] });

const cleanups: (() => unknown)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

async function open(): Promise<{ readonly client: TLSSocket; readonly connection: TlsConnection }> {
  const connections: TlsConnection[] = [];
  const tlsServer = createServer({ cert, key }, (socket) => {
    connections.push(new TlsConnection(socket));
  });
  const server = createNetServer((socket) => tlsServer.emit("connection", socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    ca: authority.certificate,
    servername: "headgate.shop",
  });
  client.on("error", () => {});
  const connection = await waitFor("it is open", () => connections[0]);
  cleanups.push(
    () => server.close(),
    () => client.destroy(),
    () => connection.destroy(),
  );
  return { client, connection };
}

describe("TlsConnection", () => {
  it("carries bytes both ways, in order, and counts what it wrote", async () => {
    const { client, connection } = await open();
    let heard = "";
    connection.on("data", (bytes: Buffer) => {
      heard += bytes;
    });
    client.write("question");
    await waitFor("the question arrives", () => heard === "question");
    let answer = "";
    client.on("data", (bytes: Buffer) => {
      answer += bytes;
    });
    expect(connection.bytesWritten).toBe(0);
    connection.write("a");
    connection.cork();
    connection.write("b");
    connection.write("c");
    connection.uncork();
    await waitFor("the answer arrives", () => answer === "abc");
    expect(connection.bytesWritten).toBe(3);
  });

  it("takes no more from a client than its reader does", async () => {
    const { client, connection } = await open();
    const block = Buffer.alloc(1_000_000);
    let sentCount = 0;
    const send = (): void => {
      sentCount += 1;
      if (sentCount < 100) client.write(block, send);
    };
    client.write(block, send);
    await waitFor("the client has to wait", () => client.writableLength > 0 && sentCount > 1);
    expect(connection.readableLength).toBeLessThan(block.length);
    let receivedBytes = 0;
    connection.on("data", (bytes: Buffer) => {
      receivedBytes += bytes.length;
    });
    await waitFor("all arrives once it is read", () => receivedBytes === 100 * block.length);
  });

  it("makes a writer wait while the client does not read", async () => {
    const { client, connection } = await open();
    client.pause();
    const block = Buffer.alloc(1_000_000);
    let isRoom = true;
    for (let i = 0; i < 50; i += 1) isRoom = connection.write(block);
    expect(isRoom).toBe(false);
    let drainedCount = 0;
    connection.once("drain", () => {
      drainedCount += 1;
    });
    client.resume();
    await waitFor("there is room again", () => drainedCount === 1);
    expect(connection.bytesWritten).toBe(50 * block.length);
  });

  it("ends when the client ends, with what was written before", async () => {
    const { client, connection } = await open();
    const events: string[] = [];
    connection.on("data", (bytes) => events.push(String(bytes)));
    connection.once("end", () => events.push("end"));
    connection.once("error", () => events.push("error"));
    client.end("bye");
    await waitFor("it is closed", () => connection.closed);
    expect(events).toEqual(["bye", "end"]);
  });

  it("closes without an error when the client resets it", async () => {
    const { client, connection } = await open();
    const errors: unknown[] = [];
    connection.on("error", (error) => errors.push(error));
    connection.resume();
    client.destroy();
    await waitFor("it is closed", () => connection.closed);
    expect(errors).toEqual([]);
  });

  it("ends the client's connection when it ends or is destroyed", async () => {
    const first = await open();
    first.client.resume();
    first.connection.end("bye");
    await waitFor("the client has read the end", () => first.client.closed);
    const second = await open();
    second.connection.destroy();
    await waitFor("the client is cut", () => second.client.closed);
  });
});
