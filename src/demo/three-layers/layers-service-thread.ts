import { parentPort, workerData } from "node:worker_threads";
import { systemClock, systemRandom } from "../../host/clock.js";
import type { ServiceCounts } from "./layers-counts.js";
import { createServerLayer } from "./layers-protection.js";
import type { LayersPartMessage, LayersPartReply, ServiceOrder } from "./layers-rig.js";
import { LayersService } from "./layers-service.js";
import type { LayersSettings } from "./layers-settings.js";

/** Runs in a worker thread: the service of the example, including its layer. */
const { port, portSetting, settings } = workerData as ServiceOrder;
const layer = createServerLayer({ clock: systemClock, random: systemRandom });
const service = new LayersService(systemClock, layer);
apply(settings);
try {
  reply({ kind: "ready", port: await service.listen(port, portSetting) });
} catch (thrown) {
  reply({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
}
parentPort?.on("message", (request: LayersPartMessage) => {
  if (request.kind === "settings") apply(request.settings);
  else reply({ kind: "counts", counts: service.counts });
});

function apply({ layers, workersRatio }: LayersSettings): void {
  service.isProtected = layers.server;
  service.setWorkers(workersRatio);
}

function reply(message: LayersPartReply<ServiceCounts>): void {
  parentPort?.postMessage(message);
}
