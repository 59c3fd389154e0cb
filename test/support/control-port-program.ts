import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openStubbedControlPort } from "./stubbed-control-port.js";

/**
 * A program of its own: the control port, with a stub in place of the fleet's loop that says what
 * it is told over HTTP, and shows there what it was told. Started with its settings as JSON; prints
 * its two ports as JSON once it listens.
 */
const port = await openStubbedControlPort(JSON.parse(process.argv[2] ?? "{}"));

const control = createServer((request, response) => {
  if (request.method === "GET") {
    response.end(port.look());
    return;
  }
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    port.say(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.end();
  });
});
control.listen(0, "127.0.0.1", () => {
  const address = control.address() as AddressInfo;
  const ports = { port: port.port, controlPort: address.port };
  process.stdout.write(`${JSON.stringify(ports)}\n`);
});
