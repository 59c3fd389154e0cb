import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheBounds } from "../../src/app/base/cache-bounds.js";
import { sha256 } from "../../src/app/base/sha256.js";
import type { Cancel, Clock } from "../../src/core/base/clock.js";
import type { Peer } from "../../src/core/base/peer.js";
import { noOverrides } from "../../src/core/limits/override-table.js";
import { QuotaRegistry } from "../../src/decide/quota/quota-registry.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { QuotaLeases } from "../../src/fleet/claims/quota-leases.js";
import { createQuotaService } from "../../src/rpc/control/quota-stream.js";
import { ControlCounts, ControlStreams } from "../../src/rpc/nodes/control-stream.js";
import { NodeRegistry } from "../../src/rpc/nodes/node-registry.js";
import { MemoryQuotas } from "../../src/store/coordination/memory-coordination.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { BidiHandler, BidiReader } from "../../src/wire/grpc/service.js";
import { testOwners } from "../support/control-rig.js";
import { FakeClock, settlePromises } from "../support/fake-clock.js";
import { FakeRandom } from "../support/fake-random.js";
import { usageMessage } from "../support/quota-client.js";
import { tenantQuota } from "../support/quota-rig.js";
import { noSwitches } from "../support/switches.js";
import { type LongestTurns, longestTurns, TurnMeter, type TurnMs } from "./turn-meter.js";

/** A fleet of Envoys on one replica. Each shares each of its pools with others. */
export interface QuotaFleet {
  readonly envoyCount: number;
  readonly bucketsPerEnvoy: number;
  readonly poolCount: number;
}

/** What quotas cost one replica, from the bytes of a report to those of an assignment. */
export interface QuotaPathCost extends QuotaFleet {
  /**
   * Of the first report of a bucket, with all it asks for at once: its pool, a claim, a share. Of
   * the second half of all, since V8 compiles during the first.
   */
  readonly cpuUsPerNewBucket: number;
  /** Of reading a report and answering it. */
  readonly cpuUsPerReport: number;
  /** Of all that follows too, for each report: rounds, charges, claims, with the embedded store. */
  readonly cpuUsPerReportOverall: number;
  /** The longest callbacks. */
  readonly turns: LongestTurns;
  /** What V8 holds, for each bucket. */
  readonly bytesPerBucket: number;
}

/** Virtual seconds until everything is divided, and those that are measured. */
const warmUpSeconds = 15;
const measuredSeconds = 10;

/** Envoy's report interval. */
const reportSeconds = 5;

/** Messages of the same buckets with other numbers. */
const variantCount = 8;

const ticksPerSecond = 10;

/** A clock that notes how long each callback takes. */
class NotingClock extends FakeClock {
  readonly #meter = new TurnMeter();

  override schedule(delayMs: number, callback: () => void): Cancel {
    return super.schedule(delayMs, () => this.note(callback));
  }

  override scheduleTurn(callback: () => void): Cancel {
    return super.scheduleTurn(() => this.note(callback));
  }

  note(callback: () => void): void {
    this.#meter.run(callback);
  }

  /** The longest since it was asked for last. */
  takeLongest(): TurnMs {
    return this.#meter.takeLongest();
  }
}

/** The service of quotas with its registry and embedded stores, in virtual time. */
class QuotaReplica {
  readonly clock = new NotingClock();
  readonly registry: QuotaRegistry;
  sentCount = 0;
  readonly #open: BidiHandler;

  constructor() {
    const { clock } = this;
    const policy = tenantQuota(1_000);
    this.registry = new QuotaRegistry({
      policies: { current: () => policy },
      overrides: { current: () => noOverrides },
      store: new MemoryLimitStore({ clock }),
      leases: new QuotaLeases({ store: new MemoryQuotas(clock), random: new FakeRandom(1) }),
      clock,
      counters: new DecisionCounters(),
      switches: noSwitches,
      digest: sha256,
      replicaCount: () => 1,
      bucketsBytesMax: cacheBounds({ cacheBytesMax: 134_217_728 }).quotaBucketsBytesMax,
      onEvent: ({ kind }) => {
        throw new Error(kind);
      },
      onBug: (thrown) => {
        throw thrown;
      },
    });
    const registry = new NodeRegistry({
      nowMs: () => clock.monotonicMs(),
      ttlMs: 15_000,
      configuredShare: () => 0,
      configuredHigh: () => 0,
    });
    const counts = new ControlCounts();
    // A fake clock looks at all timers when it cancels one, and each stream has one.
    const timeless: Clock = {
      monotonicMs: () => clock.monotonicMs(),
      epochUs: () => clock.epochUs(),
      schedule: () => () => {},
      scheduleTurn: (callback) => clock.scheduleTurn(callback),
    };
    const streams = new ControlStreams({ registry, owners: testOwners(), counts, clock: timeless });
    const onIgnored = (cause: string): void => {
      throw new Error(cause);
    };
    const { methods } = createQuotaService({ streams, quotas: this.registry, onIgnored });
    const [method] = methods;
    if (method?.kind !== "bidi") throw new Error("it has one method, both ways");
    this.#open = method.open;
  }

  /** Opens the stream of an Envoy with an address of its own. @returns what takes its messages */
  open(i: number): (message: Uint8Array) => void {
    const peer: Peer = {
      kind: "address",
      identity: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
      names: [],
    };
    const metadata = (name: string): string | undefined =>
      name === "x-headgate-node" ? `edge-${i}` : undefined;
    // As the transport does: a message waits until the one before is done.
    const waiting: Uint8Array[] = [];
    let isWorking = false;
    let isHandingOver = false;
    const handOver = (): void => {
      if (isHandingOver) return;
      isHandingOver = true;
      while (!isWorking && waiting.length > 0) {
        isWorking = true;
        reader.onMessage(waiting.shift() ?? new Uint8Array());
      }
      isHandingOver = false;
    };
    const reader: BidiReader = this.#open(
      { deadlineMs: Infinity, metadata, peer },
      {
        send: () => {
          this.sentCount += 1;
          return true;
        },
        next: () => {
          isWorking = false;
          handOver();
        },
        end: () => {},
        fail: (thrown) => {
          throw thrown;
        },
      },
    );
    return (message) => {
      waiting.push(message);
      handOver();
    };
  }

  /** Lets one tick pass, and all that is promised. */
  async tick(): Promise<void> {
    this.clock.advance(1_000 / ticksPerSecond);
    await this.settle();
  }

  /** Does what waits for the end of the turn, and all that is promised. */
  async settle(): Promise<void> {
    await settlePromises();
    this.clock.runTurns();
    await settlePromises();
  }
}

/** The heap that Node.js takes on a machine with 16 GiB or more, whose bound a fleet must fit. */
const heapMegabytes = 4_144;

/** Measures a fleet in a process of its own, whose heap holds nothing else. */
export async function measureQuotaFleet(fleet: QuotaFleet): Promise<QuotaPathCost> {
  const script = fileURLToPath(import.meta.url);
  const heap = `--max-old-space-size=${heapMegabytes}`;
  const options = ["--expose-gc", heap, "--import", "tsx"];
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [...options, script, JSON.stringify(fleet)]);
  return JSON.parse(stdout) as QuotaPathCost;
}

/** Measures a fleet; demand is never the same for two reports of a bucket. */
export async function measureQuotaPath(fleet: QuotaFleet): Promise<QuotaPathCost> {
  const { envoyCount, bucketsPerEnvoy } = fleet;
  const messages = new FleetMessages(fleet);
  const before = heldBytes();
  const replica = new QuotaReplica();
  const { clock } = replica;
  const senders = Array.from({ length: envoyCount }, (_, i) => replica.open(i));
  const bucketCount = envoyCount * bucketsPerEnvoy;
  const every = reportSeconds * ticksPerSecond;
  let newBucketUs = 0;
  for (let tick = 0; tick < every; tick += 1) {
    const before = process.cpuUsage();
    for (let i = tick; i < envoyCount; i += every) {
      for (const message of messages.first(i)) senders[i]?.(message);
    }
    await replica.settle();
    if (tick >= every / 2) newBucketUs += usedUs(before);
    await replica.tick();
  }
  if (replica.registry.holderCount !== bucketCount) throw new Error("not all buckets are held");
  const longest: TurnMs[] = [];
  const used = { reportsUs: 0, reportCount: 0 };
  let since = process.cpuUsage();
  for (let tick = 0; tick < (warmUpSeconds + measuredSeconds) * ticksPerSecond; tick += 1) {
    if (tick % ticksPerSecond === 0) longest.push(clock.takeLongest());
    if (tick === warmUpSeconds * ticksPerSecond) {
      Object.assign(used, { reportsUs: 0, reportCount: 0 });
      since = process.cpuUsage();
      longest.length = 0;
    }
    const beforeReports = process.cpuUsage();
    for (let i = tick % every; i < envoyCount; i += every) {
      clock.note(() => senders[i]?.(messages.at(i, tick)));
      used.reportCount += bucketsPerEnvoy;
    }
    clock.runTurns();
    used.reportsUs += usedUs(beforeReports);
    await replica.tick();
  }
  const overallUs = usedUs(since);
  const bytes = heldBytes() - before;
  return {
    ...fleet,
    cpuUsPerNewBucket: (2 * newBucketUs) / bucketCount,
    cpuUsPerReport: used.reportsUs / used.reportCount,
    cpuUsPerReportOverall: overallUs / used.reportCount,
    turns: longestTurns(longest),
    bytesPerBucket: bytes / bucketCount,
  };
}

/** Messages of groups of Envoys that have the same buckets. */
class FleetMessages {
  readonly #first: (readonly Uint8Array[])[] = [];
  readonly #later: (readonly Uint8Array[])[] = [];

  constructor({ bucketsPerEnvoy, poolCount }: QuotaFleet) {
    const random = new FakeRandom(1);
    const groupCount = Math.max(1, Math.floor(poolCount / bucketsPerEnvoy));
    for (let group = 0; group < groupCount; group += 1) {
      const ids = Array.from({ length: bucketsPerEnvoy }, (_, i) => ({
        quota: "pace",
        tenant: `tenant-${(group * bucketsPerEnvoy + i) % poolCount}`,
      }));
      this.#first.push(ids.map((id) => usageMessage("edge", [{ id }])));
      this.#later.push(
        Array.from({ length: variantCount }, () => {
          const usages = ids.map((id) => ({
            id,
            allowed: Math.floor(random.next() * 10),
            denied: random.next() < 0.5 ? Math.floor(random.next() * 10) : 0,
            elapsedSeconds: reportSeconds,
          }));
          return usageMessage("edge", usages);
        }),
      );
    }
  }

  /** One message for each new bucket, as Envoy sends them. */
  first(envoy: number): readonly Uint8Array[] {
    return this.#first[envoy % this.#first.length] ?? [];
  }

  /** One message for all buckets. */
  at(envoy: number, tick: number): Uint8Array {
    const variants = this.#later[envoy % this.#later.length] ?? [];
    return variants[(envoy + tick) % variants.length] ?? new Uint8Array(0);
  }
}

function heldBytes(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function usedUs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const cost = await measureQuotaPath(JSON.parse(process.argv[2] ?? "") as QuotaFleet);
  process.stdout.write(JSON.stringify(cost));
}
