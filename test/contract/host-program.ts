import { MessageChannel } from "node:worker_threads";
import { openHostLoad } from "../../src/host/host-load.js";
import { realClock } from "../support/real-clock.js";

/** Prints the readings of its own host, a line each, until it is killed. */
openHostLoad({
  clock: realClock,
  everyMs: 200,
  onRead: (readings) => process.stdout.write(`${JSON.stringify(readings)}\n`),
});
new MessageChannel().port1.on("message", () => {});
