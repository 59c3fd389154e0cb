import type { Bucket, Charge } from "../../src/core/limits/bucket.js";
import { type BucketTable, decideRepeated } from "../../src/core/limits/gcra.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import { SimulatedCluster } from "../support/simulated-cluster.js";
import type { KeyEvent } from "../support/simulated-events.js";
import { SimulatedServer } from "../support/simulated-server.js";
import type { SimulatedSide, SimulatedSides } from "../support/simulated-store.js";
import type { SimulatedTime } from "../support/simulated-time.js";
import type { Dice } from "./dice.js";

/** What the limits of a run are kept in. */
export const shapes = ["one server", "two servers", "a cluster", "a cluster and a server"] as const;

/** One of them. */
export type Shape = (typeof shapes)[number];

/** What the places of keys begin with: where limits are kept, and where those by the second. */
export const sides = ["main", "second"] as const;

/** What `Stores` are made of. */
export interface StoresParts {
  readonly time: SimulatedTime;
  readonly dice: Dice;
  /** Told of everything that changes keys; `place` names a key's bucket on its side. */
  readonly onKeyEvent: (
    place: string,
    at: { key: LimitKey; event: KeyEvent; atUs: number },
  ) => void;
}

/** A limit with this period lives in the second Redis, where there is one. */
const secondUs = 1_000_000;

/** All the servers of a run: one, a cluster, and perhaps a second one for limits by the second. */
export class Stores {
  readonly shape: Shape;
  readonly sides: SimulatedSides;
  readonly #parts: StoresParts;

  constructor(parts: StoresParts) {
    this.#parts = parts;
    this.shape = parts.dice.pick(shapes);
    const isCluster = this.shape.startsWith("a cluster");
    const main = isCluster ? this.#createCluster() : this.#createSingle("main");
    const isPair = this.shape === "two servers" || this.shape === "a cluster and a server";
    this.sides = isPair ? { main, perSecond: this.#createSingle("second") } : { main };
  }

  get servers(): readonly SimulatedServer[] {
    const { main, perSecond } = this.sides;
    return [...serversOf(main), ...(perSecond === undefined ? [] : serversOf(perSecond))];
  }

  /** The cluster, if there is one. */
  get cluster(): SimulatedCluster | undefined {
    const { main } = this.sides;
    return main.kind === "cluster" ? main.cluster : undefined;
  }

  /** Whether the charges would be granted now, wherever they are; nothing is charged. */
  wouldGrant(charges: readonly Charge[]): boolean {
    const { nowUs } = this.#parts.time;
    const buckets = new Map<LimitKey, Bucket | undefined>();
    for (const charge of charges) {
      buckets.set(charge.key, this.#serverOf(charge)?.bucketAt(charge.key, nowUs));
    }
    const table: BucketTable = { get: (key) => buckets.get(key), set() {}, delete() {} };
    return decideRepeated({ charges, multiplicity: 1 }, table, nowUs).grantedCount > 0;
  }

  #serverOf({ key, periodUs }: Charge): SimulatedServer | undefined {
    const { main, perSecond } = this.sides;
    const side = perSecond !== undefined && periodUs === secondUs ? perSecond : main;
    return side.kind === "single" ? side.server : side.cluster.serverOf(key);
  }

  #createSingle(side: (typeof sides)[number]): SimulatedSide {
    return { kind: "single", server: this.#createServer(side) };
  }

  #createCluster(): SimulatedSide {
    const { dice } = this.#parts;
    const nodeCount = dice.pick([2, 3]);
    const servers = Array.from({ length: nodeCount }, () => this.#createServer("main"));
    return { kind: "cluster", cluster: new SimulatedCluster(servers, dice.pick([3, 4, 12])) };
  }

  #createServer(side: (typeof sides)[number]): SimulatedServer {
    const { time, dice, onKeyEvent } = this.#parts;
    return new SimulatedServer({
      time,
      aheadUs: dice.below(dice.pick([1, 1, 20_000, 2_000_000])),
      onKeyEvent: (key, event, atUs) => onKeyEvent(`${side} ${key}`, { key, event, atUs }),
    });
  }
}

function serversOf(side: SimulatedSide): readonly SimulatedServer[] {
  return side.kind === "single" ? [side.server] : side.cluster.servers;
}
