import {
  reservedHighOf,
  type ServiceShares,
  type ShareSnapshot,
} from "../../core/feedback/feedback.js";
import type { LoopEvent } from "../../fleet/loop/shared-loop.js";
import type { Logger } from "../base/logger.js";
import { remedyOf } from "../store/store-remedies.js";

/** By how much of itself a limit has to change to be told of again. */
const reportedChangeRatio = 0.2;

/** Snapshots in a row without a refusal after which Envoys' breakers have let all in again. */
const calmSnapshots = 10;

/** Logs what happens to the loop of the fleet, at changes. No name of an Envoy is logged. */
export class FleetJournal {
  readonly #logger: Logger;
  /** What was told of last, by service. */
  #reported = new Map<string, Pick<ServiceShares, "limit" | "gate">>();
  /** By service whose breakers refuse requests: snapshots since the last refusal. */
  readonly #overflowing = new Map<string, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Who leads, and whether a snapshot holds. */
  note(event: LoopEvent): void {
    const { kind, ...facts } = event;
    const line = { event: kind, ...facts };
    switch (event.kind) {
      case "leadingBegan":
        this.#logger.info(line, "This replica is now the leader.");
        break;
      case "leadingEnded":
        this.#logger.info(line, "This replica is no longer the leader.");
        break;
      case "leaderChanged":
        this.#logger.info(line, "The snapshots of another leader are active.");
        break;
      case "leaseLost":
        this.#logger.warn(
          { ...line, remedy: remedyOf(event.code) },
          "The store does not answer who leads. Envoys will fall back to their " +
            "configured limits.",
        );
        break;
      case "leaseFound":
        this.#logger.info(line, "The store answers who leads again.");
        break;
      case "snapshotLost":
        this.#logger.warn(
          line,
          "Lost the fleet snapshot: Envoys fall back to their configured limits.",
        );
        break;
      case "fleetUnreadable":
        this.#logger.warn(
          line,
          "A report or snapshot has another version; it and all further ones are ignored.",
        );
        break;
      case "snapshotFound":
        this.#logger.info(line, "The fleet snapshot is valid again.");
        break;
    }
  }

  /** A new snapshot holds that this replica has made. */
  noteSnapshot({ services }: ShareSnapshot): void {
    const reported = new Map<string, Pick<ServiceShares, "limit" | "gate">>();
    for (const service of this.#overflowing.keys()) {
      if (!services.has(service)) this.#overflowing.delete(service);
    }
    for (const [service, shares] of services) {
      const { limit, gate, facts } = shares;
      this.#noteOverflow(service, shares);
      const before = this.#reported.get(service);
      const isNew = before === undefined || isMove(before.limit, limit) || before.gate !== gate;
      reported.set(service, isNew ? { limit, gate } : before);
      if (!isNew) continue;
      const from = before === undefined ? {} : { before: before.limit };
      const line = { event: "fleetLimitChanged", service, limit, ...from, gate, ...facts };
      this.#logger.info(line, "The fleet's limit of a service has changed.");
    }
    this.#reported = reported;
  }

  #noteOverflow(service: string, shares: ServiceShares): void {
    const { limit, facts } = shares;
    const calm = this.#overflowing.get(service);
    const line = { service, limit, reservedHigh: reservedHighOf(shares), ...facts };
    if (facts.overflowPerSecond > 0) {
      this.#overflowing.set(service, 0);
      if (calm !== undefined) return;
      const sentence =
        "Circuit breakers of Envoys refuse requests of a service: its limit is reached.";
      this.#logger.warn({ event: "overflowBegan", ...line }, sentence);
    } else if (calm !== undefined && calm + 1 < calmSnapshots) {
      this.#overflowing.set(service, calm + 1);
    } else if (calm !== undefined) {
      this.#overflowing.delete(service);
      const sentence = "Circuit breakers of Envoys no longer refuse requests of a service.";
      this.#logger.info({ event: "overflowEnded", ...line }, sentence);
    }
  }
}

function isMove(before: number, limit: number): boolean {
  return Math.abs(limit - before) >= reportedChangeRatio * before;
}
