import { Lender, type LendingEvent } from "../../fleet/regions/lender.js";
import type { Logger } from "../base/logger.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { regionMetrics } from "../metrics/region-metrics.js";
import { remedyOf } from "../store/store-remedies.js";

/** Lends limits with `spread: global` between regions; undefined: there are none. */
export function openLending(
  { config, clock, random, logger, metrics }: Runtime,
  { opened, fleet }: Pick<Foundation, "opened"> & { readonly fleet: Fleet },
): Lender | undefined {
  const { regions } = config;
  if (regions === undefined) return undefined;
  const { own: region, names } = regions;
  const lender = new Lender({
    region,
    store: opened.store,
    peers: opened.peers,
    clock,
    random,
    replicaCount: fleet.replicaCount,
    onEvent: (event) => logLending(event, logger),
  });
  metrics.add(regionMetrics(lender));
  const sentence = `Limits with spread: global are divided among ${names.length} regions.`;
  logger.info({ event: "regionsOpened", region, regions: names.join(",") }, sentence);
  return lender;
}

function logLending(event: LendingEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  switch (event.kind) {
    case "regionLost":
      logger.warn(
        { ...line, remedy: "Check its Redis, and the network between the regions." },
        "Nothing can be borrowed from a region; this one enforces its own part of global limits.",
      );
      return;
    case "regionFound":
      logger.info(line, "Limits are borrowed from a region again.");
      return;
    case "creditsLost":
      logger.warn(
        { ...line, remedy: remedyOf(event.code) },
        "The store did not confirm borrowed hits, which are lost; nothing is borrowed meanwhile.",
      );
      return;
    case "creditsFound":
      logger.info(line, "The store confirms borrowed hits again.");
  }
}
