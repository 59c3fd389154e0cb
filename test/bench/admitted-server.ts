import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { httpAdmission } from "../../src/client/server/node-http.js";
import { createServerAdmission } from "../../src/client/server/server-admission.js";

/**
 * A service that answers at once, and with `admitted` as its argument behind an admission of all
 * defaults. Prints its port once it listens; ends on SIGTERM.
 */
const answer: RequestListener = (_request, response) => {
  response.setHeader("content-length", "3");
  response.end("ok\n");
};

const isAdmitted = process.argv[2] === "admitted";
const listener = isAdmitted
  ? httpAdmission(createServerAdmission({ name: "bench" }), answer)
  : answer;
const server = createServer(listener);
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
