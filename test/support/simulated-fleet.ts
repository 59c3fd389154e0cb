import type { Random } from "../../src/core/base/clock.js";
import type { NodeReport, ShareSnapshot } from "../../src/core/feedback/feedback.js";
import { defaultLoopTimes } from "../../src/core/feedback/feedback-settings.js";
import { LayerLedger, type NodeLayer } from "../../src/rpc/nodes/layer-ledger.js";

/** Time between two looks at the fleet, in milliseconds. */
export const tickMs = 250;

/** What happens to reports on their way, as parts of all. */
export interface ReportWeather {
  readonly lostRatio: number;
  /** Come up to `lateMsMax` later, and so after newer ones. */
  readonly lateRatio: number;
  readonly lateMsMax: number;
  readonly doubledRatio: number;
}

/** What is true of a service at one Envoy, by whoever simulates the traffic. */
export interface NodeTraffic {
  inFlight: number;
  rps: number;
  servedCount: number;
  latencySumMs: number;
  refusedCount: number;
}

/** One Envoy: what it enforces, and whom it is connected to. */
export interface SimulatedEnvoy {
  readonly id: string;
  /** Its place in the service's traffic. */
  readonly place: number;
  isAlive: boolean;
  /** Replicas that it has its layers from and tells its numbers to; undefined: cut off. */
  layersFrom: number | undefined;
  /** Counts its streams of layers, of which it has one at a time. */
  streamCount: number;
  /** When the last message of that stream arrives: none overtakes another. */
  streamMs: number;
  numbersTo: number | undefined;
  /** Since when it tells its numbers without a pause. */
  numbersSinceMs: number;
  layer: NodeLayer | undefined;
  layerUntilMs: number;
  readonly traffic: ReadonlyMap<string, NodeTraffic>;
}

/** What a `SimulatedFleet` is made of. */
export interface SimulatedFleetParts {
  readonly random: Random;
  readonly nodeCount: number;
  readonly replicaCount: number;
  readonly services: readonly string[];
  readonly configuredShare: number;
  readonly weather: ReportWeather;
  /** Identities that have the Envoys in turn; undefined: nobody says whose they are. */
  readonly ownerCount?: number | undefined;
  /** Default: slower than a sound network and store would ever be. */
  readonly delays?: FleetDelays;
  /** Whether late reports wait for the next ones of their replica. Default: each comes alone. */
  readonly isMerged?: boolean;
}

/** How long what is between a leader and Envoys takes at most, in milliseconds. */
export interface FleetDelays {
  /** From one look of a replica for a newer snapshot to its next. */
  readonly snapshotReadMsMax: number;
  /** How old what such a look finds is. */
  readonly snapshotSeenMsMax: number;
  /** From one report of a replica to its next. */
  readonly reportEveryMs: number;
  /** A layer, or its acknowledgement, on its way. */
  readonly pushMsMax: number;
}

const slowDelays: FleetDelays = {
  snapshotReadMsMax: 1_000,
  snapshotSeenMsMax: 500,
  reportEveryMs: 1_000,
  pushMsMax: 500,
};

const refreshMs = 5_000;

interface Message {
  readonly atMs: number;
  readonly deliver: () => void;
}

interface Replica {
  snapshot: ShareSnapshot | undefined;
  /** When it was written. */
  snapshotMs: number;
  snapshotReadMs: number;
  nextReadMs: number;
  nextReportMs: number;
  /** What it knows of Envoys that had layers from it. */
  readonly ledgers: Map<string, LayerLedger>;
}

/**
 * Envoys, the replicas that they are connected to, and what is on its way between them: layers with
 * their time to live, acknowledgements, and reports in any weather. What replicas know of shares is
 * the real ledger of layers. Traffic is for whoever simulates it.
 */
export class SimulatedFleet {
  readonly envoys: SimulatedEnvoy[] = [];
  readonly #parts: SimulatedFleetParts;
  readonly #delays: FleetDelays;
  readonly #replicas: Replica[];
  #late: LateReport[] = [];
  #messages: Message[] = [];
  #snapshots: readonly { readonly snapshot: ShareSnapshot; readonly writtenMs: number }[] = [];
  /** What each snapshot says to each Envoy: they look at it at every tick. */
  readonly #layers = new WeakMap<ShareSnapshot, Map<string, NodeLayer>>();
  #pushCount = 0;
  #nowMs = 0;

  constructor(parts: SimulatedFleetParts) {
    this.#parts = parts;
    this.#delays = parts.delays ?? slowDelays;
    const { random, nodeCount, replicaCount } = parts;
    this.#replicas = Array.from({ length: replicaCount }, () => ({
      snapshot: undefined,
      snapshotMs: 0,
      snapshotReadMs: 0,
      nextReadMs: random.next() * this.#delays.snapshotReadMsMax,
      nextReportMs: random.next() * this.#delays.reportEveryMs,
      ledgers: new Map(),
    }));
    for (let i = 0; i < nodeCount; i += 1) this.addEnvoy();
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Layers that were sent until now. */
  get pushCount(): number {
    return this.#pushCount;
  }

  /** One more Envoy, which runs on its configured defaults until it has a layer. */
  addEnvoy(): SimulatedEnvoy {
    const { services } = this.#parts;
    const place = this.envoys.length;
    const traffic = services.map((service): readonly [string, NodeTraffic] => [
      service,
      { inFlight: 0, rps: 0, servedCount: 0, latencySumMs: 0, refusedCount: 0 },
    ]);
    const envoy: SimulatedEnvoy = {
      id: `envoy-${place}`,
      place,
      isAlive: true,
      layersFrom: undefined,
      streamCount: 0,
      streamMs: 0,
      numbersTo: undefined,
      numbersSinceMs: this.#nowMs,
      layer: undefined,
      layerUntilMs: 0,
      traffic: new Map(traffic),
    };
    this.envoys.push(envoy);
    this.connectLayers(envoy);
    this.connectNumbers(envoy);
    return envoy;
  }

  /** What it lets into work now. */
  enforced({ layer, layerUntilMs }: SimulatedEnvoy, service: string): number {
    const { configuredShare } = this.#parts;
    if (layer === undefined || this.#nowMs >= layerUntilMs) return configuredShare;
    return layer.shares.get(service) ?? configuredShare;
  }

  /** Whether it has a share of its own now, and does not go by its configured default. */
  hasShare({ layer, layerUntilMs }: SimulatedEnvoy, service: string): boolean {
    return this.#nowMs < layerUntilMs && layer?.shares.has(service) === true;
  }

  /** It gets its layers from any replica from now on. */
  connectLayers(envoy: SimulatedEnvoy): void {
    this.cutLayers(envoy);
    envoy.layersFrom = this.#anyReplica();
    envoy.streamCount += 1;
    const { ledgers } = this.#replicaAt(envoy.layersFrom);
    const { ttlMs } = defaultLoopTimes;
    const { configuredShare } = this.#parts;
    if (ledgers.has(envoy.id)) return;
    ledgers.set(envoy.id, new LayerLedger({ ttlMs, configuredShare: () => configuredShare }));
  }

  /** It gets no layers any more, until it is connected again. */
  cutLayers(envoy: SimulatedEnvoy): void {
    if (envoy.layersFrom === undefined) return;
    this.#replicaAt(envoy.layersFrom).ledgers.get(envoy.id)?.noteStreamEnded(this.#nowMs);
    envoy.layersFrom = undefined;
  }

  /** It tells its numbers to any replica from now on. */
  connectNumbers(envoy: SimulatedEnvoy): void {
    if (envoy.numbersTo === undefined) envoy.numbersSinceMs = this.#nowMs;
    envoy.numbersTo = this.#anyReplica();
  }

  /** Nobody hears its numbers any more, until it is connected again. */
  cutNumbers(envoy: SimulatedEnvoy): void {
    envoy.numbersTo = undefined;
  }

  /** The replica that it was connected to is gone, and with it what anybody knew of this Envoy. */
  lose(envoy: SimulatedEnvoy): void {
    this.cutLayers(envoy);
    this.cutNumbers(envoy);
    for (const { ledgers } of this.#replicas) ledgers.delete(envoy.id);
  }

  /** It dies; or with `isAlive` set again, another process of its name comes up. */
  kill(envoy: SimulatedEnvoy): void {
    envoy.isAlive = false;
    this.cutLayers(envoy);
    this.cutNumbers(envoy);
    envoy.layer = undefined;
    envoy.layerUntilMs = 0;
    for (const traffic of envoy.traffic.values()) reset(traffic);
  }

  /** A process of its name comes up, without a layer and with counters from 0. */
  restart(envoy: SimulatedEnvoy): void {
    this.kill(envoy);
    envoy.isAlive = true;
    this.connectLayers(envoy);
    this.connectNumbers(envoy);
  }

  /** A leader has written a snapshot; replicas find it when they look. */
  write(snapshot: ShareSnapshot): void {
    const keptFromMs = this.#nowMs - 10_000;
    const kept = this.#snapshots.filter(({ writtenMs }) => writtenMs >= keptFromMs);
    this.#snapshots = [...kept, { snapshot, writtenMs: this.#nowMs }];
  }

  /**
   * Lives on for one tick. @returns by replica, the reports of its Envoys that are told in it: with
   * `isMerged` one for an Envoy and service
   */
  tick(): ReadonlyMap<number, readonly NodeReport[]> {
    this.#nowMs += tickMs;
    const due = this.#messages.filter(({ atMs }) => atMs <= this.#nowMs);
    this.#messages = this.#messages.filter(({ atMs }) => atMs > this.#nowMs);
    for (const { deliver } of due.sort((one, other) => one.atMs - other.atMs)) deliver();
    for (const replica of this.#replicas) this.#read(replica);
    for (const envoy of this.envoys) this.#push(envoy);
    const { isMerged = false } = this.#parts;
    const told = new Map<number, readonly NodeReport[]>();
    this.#replicas.forEach((replica, place) => {
      const isTelling = replica.nextReportMs <= this.#nowMs;
      const late = isTelling || !isMerged ? this.#takeLate(place) : [];
      const reports: NodeReport[] = [];
      if (isTelling) {
        replica.nextReportMs += this.#delays.reportEveryMs;
        for (const report of this.#reportsOf(place)) this.#send(place, report, reports);
      }
      if (isMerged && isTelling) told.set(place, newestOf([...late, ...reports]));
      else if (!isMerged) told.set(place, [...reports, ...late]);
    });
    return told;
  }

  #takeLate(place: number): NodeReport[] {
    const isDue = (one: LateReport): boolean => one.place === place && one.atMs <= this.#nowMs;
    const due = this.#late.filter(isDue).map(({ report }) => report);
    if (due.length > 0) this.#late = this.#late.filter((one) => !isDue(one));
    return due;
  }

  #anyReplica(): number {
    return Math.floor(this.#parts.random.next() * this.#replicas.length);
  }

  #replicaAt(place: number): Replica {
    const replica = this.#replicas[place];
    if (replica === undefined) throw new Error("a replica that is not there");
    return replica;
  }

  /** What a read finds was written before it, by the time that it took. */
  #read(replica: Replica): void {
    if (replica.nextReadMs > this.#nowMs) return;
    const { random } = this.#parts;
    const { snapshotReadMsMax, snapshotSeenMsMax } = this.#delays;
    replica.nextReadMs = this.#nowMs + random.next() * snapshotReadMsMax;
    const seenMs = this.#nowMs - random.next() * snapshotSeenMsMax;
    const newest = this.#snapshots.findLast(({ writtenMs }) => writtenMs <= seenMs);
    if (newest === undefined) return;
    const { term = 0, version = 0 } = replica.snapshot ?? {};
    const { snapshot } = newest;
    if (snapshot.term > term || (snapshot.term === term && snapshot.version > version)) {
      replica.snapshot = snapshot;
      replica.snapshotMs = newest.writtenMs;
    }
  }

  #push(envoy: SimulatedEnvoy): void {
    if (envoy.layersFrom === undefined) return;
    const { snapshot, snapshotMs, ledgers } = this.#replicaAt(envoy.layersFrom);
    const ledger = ledgers.get(envoy.id);
    if (snapshot === undefined || ledger === undefined || !ledger.hasRoom(this.#nowMs)) return;
    const { ttlMs, snapshotSpreadMs } = defaultLoopTimes;
    // Nobody renews what nobody has decided for so long.
    if (this.#nowMs >= snapshotMs + ttlMs) return;
    const isDue = this.#nowMs >= ledger.sentAtMs + refreshMs;
    const reported = this.#layerOf(envoy.id, snapshot);
    if (!isDue && isSame(reported, ledger.sentLayer)) return;
    const layer = { ...reported, untilMs: snapshotMs + ttlMs + snapshotSpreadMs };
    this.#pushCount += 1;
    const nonce = String(this.#pushCount);
    const keptMs = ledger.noteSent(nonce, layer, this.#nowMs);
    const stream = envoy.streamCount;
    const isOpen = (): boolean => envoy.layersFrom !== undefined && envoy.streamCount === stream;
    this.#after(envoy, () => {
      // What left before a stream ended may still arrive, as long as there is no other stream.
      if (envoy.streamCount !== stream || !envoy.isAlive) return;
      envoy.layer = layer;
      envoy.layerUntilMs = this.#nowMs + keptMs;
      this.#after(envoy, () => {
        if (isOpen()) ledger.noteAcknowledged(nonce, this.#nowMs);
      });
    });
  }

  #layerOf(nodeId: string, snapshot: ShareSnapshot): NodeLayer {
    const known = this.#layers.get(snapshot)?.get(nodeId);
    if (known !== undefined) return known;
    const layer = layerOf(nodeId, snapshot);
    const layers = this.#layers.get(snapshot) ?? new Map<string, NodeLayer>();
    this.#layers.set(snapshot, layers.set(nodeId, layer));
    return layer;
  }

  #after(envoy: SimulatedEnvoy, deliver: () => void): void {
    const atMs = this.#nowMs + this.#parts.random.next() * this.#delays.pushMsMax;
    envoy.streamMs = Math.max(envoy.streamMs, atMs);
    this.#messages.push({ atMs: envoy.streamMs, deliver });
  }

  *#reportsOf(place: number): Iterable<NodeReport> {
    const { ledgers } = this.#replicaAt(place);
    const { ownerCount } = this.#parts;
    for (const envoy of this.envoys) {
      const owner = ownerCount === undefined ? undefined : `owner-${envoy.place % ownerCount}`;
      const ledger = ledgers.get(envoy.id);
      const tells = envoy.isAlive && envoy.numbersTo === place;
      if (!tells && ledger === undefined) continue;
      for (const [service, traffic] of envoy.traffic) {
        const held = ledger?.held(service, this.#nowMs) ?? 0;
        if (tells || held > 0) {
          const knownMs = ledger?.heldAtMs(this.#nowMs) ?? this.#nowMs;
          const heldAtMs = Math.max(knownMs, this.#nowMs - 60_000);
          const numbers = tells ? take(traffic, this.#nowMs) : silent(this.#nowMs);
          yield { nodeId: envoy.id, owner, service, ...numbers, held, heldAtMs };
        }
      }
    }
  }

  #send(place: number, report: NodeReport, to: NodeReport[]): void {
    const { random, weather } = this.#parts;
    const { lostRatio, lateRatio, lateMsMax, doubledRatio } = weather;
    const draw = random.next();
    if (draw < lostRatio) return;
    const late = (): LateReport => ({
      place,
      atMs: this.#nowMs + random.next() * lateMsMax,
      report,
    });
    const isLate = draw < lostRatio + lateRatio;
    if (isLate) this.#late.push(late());
    else to.push(report);
    if (random.next() < doubledRatio) this.#late.push(late());
  }
}

/** A report that reaches its replica later. */
interface LateReport {
  readonly place: number;
  readonly atMs: number;
  readonly report: NodeReport;
}

/** One report for an Envoy and service: its newest numbers, and what it holds by the last one. */
function newestOf(reports: readonly NodeReport[]): readonly NodeReport[] {
  const newest = new Map<string, NodeReport>();
  for (const report of reports) {
    const key = `${report.nodeId} ${report.service}`;
    const known = newest.get(key);
    const { atMs, held, heldAtMs } = report;
    const isNews = known === undefined || known.atMs < atMs;
    newest.set(key, isNews ? report : { ...known, held, heldAtMs });
  }
  return [...newest.values()];
}

function layerOf(nodeId: string, { term, version, services }: ShareSnapshot): NodeLayer {
  const shares = new Map<string, number>();
  for (const [service, { shares: all }] of services) {
    const share = all.get(nodeId);
    if (share !== undefined) shares.set(service, share.default + share.high);
  }
  return { version: `${term}.${version}`, values: shares, shares };
}

function isSame(one: NodeLayer, other: NodeLayer | undefined): boolean {
  if (one.shares === other?.shares) return true;
  if (other === undefined || one.shares.size !== other.shares.size) return false;
  for (const [service, share] of one.shares) if (other.shares.get(service) !== share) return false;
  return true;
}

type Numbers = Omit<NodeReport, "nodeId" | "service" | "held" | "heldAtMs">;

function take(traffic: NodeTraffic, nowMs: number): Numbers {
  const { inFlight, rps, servedCount, latencySumMs, refusedCount } = traffic;
  // Envoys count whole requests; what is left over is counted next time.
  const count = Math.floor(servedCount);
  const sumMs = servedCount === 0 ? 0 : (latencySumMs * count) / servedCount;
  const overflowCount = Math.floor(refusedCount);
  traffic.servedCount -= count;
  traffic.latencySumMs -= sumMs;
  traffic.refusedCount -= overflowCount;
  return {
    atMs: nowMs,
    inFlight: Math.round(inFlight),
    rps,
    latency: { count, sumMs },
    errorCount: 0,
    dropCount: overflowCount,
    overflowCount,
  };
}

function silent(nowMs: number): Numbers {
  const latency = { count: 0, sumMs: 0 };
  const none = { inFlight: 0, rps: 0, latency, errorCount: 0, dropCount: 0, overflowCount: 0 };
  return { atMs: nowMs - 60_000, ...none };
}

function reset(traffic: NodeTraffic): void {
  Object.assign(traffic, { inFlight: 0, rps: 0, servedCount: 0, latencySumMs: 0, refusedCount: 0 });
}
