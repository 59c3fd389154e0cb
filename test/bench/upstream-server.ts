import { type AddressInfo, createServer } from "node:net";

/**
 * The cheapest upstream there is: every request of HTTP/1.1 without a body is answered with the
 * same bytes. It trusts its client. Prints its port once it listens; ends on SIGTERM.
 */
const answer = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n");

/** What ends a request: CR LF CR LF. */
const requestEnd = 0x0d0a0d0a;

const server = createServer({ noDelay: true }, (socket) => {
  socket.on("data", (chunk) => {
    // Envoy has one request at a time on a connection, and sends its head in one piece.
    if (chunk.readUInt32BE(chunk.length - 4) !== requestEnd) throw new Error("half a request");
    socket.write(answer);
  });
  socket.on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
