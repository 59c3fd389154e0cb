import { parentPort, workerData } from "node:worker_threads";
import { systemClock, systemRandom } from "../../host/clock.js";
import { LayersCaller } from "./layers-caller.js";
import type { CallerCounts } from "./layers-counts.js";
import { createClientLayer } from "./layers-protection.js";
import type { CallerOrder, LayersPartMessage, LayersPartReply } from "./layers-rig.js";
import { createTransport } from "./layers-transport.js";

/** Runs in a worker thread: the caller of the example, including its layer. */
const { port, settings } = workerData as CallerOrder;
const caller = new LayersCaller(
  {
    clock: systemClock,
    arrivals: systemRandom,
    retries: systemRandom,
    send: createTransport(port).send,
    createClient: (send) => createClientLayer({ clock: systemClock, random: systemRandom }, send),
  },
  settings,
);
reply({ kind: "ready", port: 0 });
parentPort?.on("message", (request: LayersPartMessage) => {
  if (request.kind === "settings") caller.settings = request.settings;
  else reply({ kind: "counts", counts: caller.counts });
});

function reply(message: LayersPartReply<CallerCounts>): void {
  parentPort?.postMessage(message);
}
