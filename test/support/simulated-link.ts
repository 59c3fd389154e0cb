import type { Random } from "../../src/core/base/clock.js";
import { type ErrorCode, ServiceError } from "../../src/core/base/errors.js";
import type { LimitKey } from "../../src/core/limits/limit.js";
import type { ScriptCall, ScriptReply } from "../../src/store/connection.js";
import type { NodeLink } from "../../src/store/redis/cluster/cluster-nodes.js";
import { SlotRefusal } from "../../src/store/redis/redis-error.js";
import { giveBackScript } from "../../src/store/redis/scripts/give-back-script.js";
import { decodeBatch, decodeCompensations, encodeGivenBack, encodeReply } from "./packed-calls.js";
import type { SimulatedCluster } from "./simulated-cluster.js";
import type { SimulatedLedger } from "./simulated-ledger.js";
import type { ServerCall, ServerReply, SimulatedServer } from "./simulated-server.js";
import type { SimulatedClock, SimulatedTime } from "./simulated-time.js";

/** One way between a replica and a server, for all that travels from now on. */
export interface NetworkWeather {
  /** Each way takes between these, in milliseconds. */
  readonly delayMsMin: number;
  readonly delayMsMax: number;
  /** Parts of the requests, and of the replies, that never arrive, 0 to 1. */
  readonly lostRequestRatio: number;
  readonly lostReplyRatio: number;
  /** The server's address refuses connections: calls fail at once, uncharged. */
  readonly isRefused: boolean;
}

/** A network that only takes its time. */
export const fairWeather: NetworkWeather = {
  delayMsMin: 0.05,
  delayMsMax: 1,
  lostRequestRatio: 0,
  lostReplyRatio: 0,
  isRefused: false,
};

/** What can happen to a call on its way; the steps of a request over several parts have names. */
export type Incident =
  | `${"peek" | "charge" | "giveBack"} ${"lost" | "refused"}`
  | "given back"
  | "moved"
  | "ask"
  | "tryAgain";

/** What a `SimulatedLink` is made of. */
export interface SimulatedLinkParts {
  readonly server: SimulatedServer;
  /** The cluster that the server is a node of. */
  readonly cluster?: SimulatedCluster;
  readonly time: SimulatedTime;
  readonly clock: SimulatedClock;
  readonly random: Random;
  readonly weather: () => NetworkWeather;
  readonly ledger: SimulatedLedger;
  readonly onIncident: (incident: Incident) => void;
  /** Told of everything that may not happen. */
  readonly onViolation: (what: string) => void;
}

/**
 * The connection of one replica to one server, as `RedisConnection` is it: a call ends at its
 * deadline, nothing that may have charged is sent twice, and only a missing script is brought along
 * in a second attempt.
 */
export class SimulatedLink implements NodeLink {
  readonly inFlightCount = 0;
  readonly #parts: SimulatedLinkParts;

  constructor(parts: SimulatedLinkParts) {
    this.#parts = parts;
  }

  run(call: ScriptCall): Promise<ScriptReply> {
    return this.#run(call, false);
  }

  runAsking(call: ScriptCall): Promise<ScriptReply> {
    return this.#run(call, true);
  }

  clusterSlots(deadlineMs: number): Promise<unknown> {
    const { cluster, server } = this.#parts;
    return this.#within(deadlineMs, (settle) => {
      this.#exchange((answer) => {
        // A node that hangs says nothing, and this question waits for none.
        if (server.health.kind === "hung") return;
        if (server.health.kind === "gone") answer(() => settle.fail(unavailable()));
        else answer(() => settle.resolve(cluster?.slotsReply()));
      });
    });
  }

  close(): void {}

  #run(script: ScriptCall, isAsking: boolean): Promise<ScriptReply> {
    const { ledger, onViolation } = this.#parts;
    const { deadlineMs } = script;
    const call = decodeCall(script);
    const keys = script.keys.map(plainKey);
    if (call.kind === "take") {
      const key = ledger.send(call.batch, deadlineMs);
      if (key !== undefined) onViolation(`sent more hits of ${key} than it was asked for`);
    }
    return this.#within<ScriptReply>(deadlineMs, (settle) => {
      const take = (reply: ServerReply): void => {
        if (settle.isOver()) return;
        if (reply.kind === "decided" && call.kind === "take") {
          ledger.note(call.batch, reply.results, deadlineMs);
        }
        if (call.kind === "giveBack" && reply.kind === "givenBack") {
          ledger.giveBack(call.compensations, deadlineMs);
        }
        if (reply.kind === "noScript") this.#send(call, { keys, isAsking, take }, true);
        else if (reply.kind === "refused") settle.fail(reply.error);
        else settle.resolve(encoded(reply));
      };
      this.#send(call, { keys, isAsking, take }, false);
    }).catch((error: unknown) => {
      const isRun = this.#noteFailure(call, error);
      if (call.kind === "take" && !isRun) ledger.takeBack(call.batch, deadlineMs);
      if (call.kind === "giveBack" && isRun) ledger.giveBack(call.compensations, deadlineMs);
      throw error;
    });
  }

  #send(call: ServerCall, { keys, isAsking, take }: Errand, bringsScript: boolean): void {
    const { server, cluster, onIncident } = this.#parts;
    const refuse = () => cluster?.refusalOf(server, { keys, isAsking });
    this.#exchange((answer) => {
      server.arrive({ call, bringsScript, refuse }, (reply) => {
        if (reply.kind === "givenBack") onIncident("given back");
        answer(() => take(reply));
      });
    });
  }

  /** There and back again, or not. */
  #exchange(arrive: (answer: (deliver: () => void) => void) => void): void {
    const { time, random, weather } = this.#parts;
    if (random.next() < weather().lostRequestRatio) return;
    time.after(this.#delayMs(), () => {
      arrive((deliver) => {
        if (random.next() < weather().lostReplyRatio) return;
        time.after(this.#delayMs(), deliver);
      });
    });
  }

  #within<T>(deadlineMs: number, ask: (settle: Settle<T>) => void): Promise<T> {
    const { clock, weather } = this.#parts;
    return new Promise((resolve, reject) => {
      const leftMs = deadlineMs - clock.monotonicMs();
      if (weather().isRefused || leftMs <= 0) {
        reject(weather().isRefused ? unavailable() : failure("STORE_TIMEOUT"));
        return;
      }
      let isOver = false;
      const once = (end: () => void): void => {
        if (isOver) return;
        isOver = true;
        cancel();
        end();
      };
      const fail = (error: ServiceError): void => once(() => reject(error));
      const cancel = clock.schedule(leftMs, () => fail(failure("STORE_TIMEOUT")));
      ask({ resolve: (value) => once(() => resolve(value)), fail, isOver: () => isOver });
    });
  }

  /** Answers whether the call may have run all the same. */
  #noteFailure(call: ServerCall, error: unknown): boolean {
    const { onIncident } = this.#parts;
    const isTimeout = error instanceof ServiceError && error.code === "STORE_TIMEOUT";
    if (error instanceof SlotRefusal) onIncident(error.kind);
    else onIncident(`${stepOf(call)} ${isTimeout ? "lost" : "refused"}`);
    return isTimeout;
  }

  #delayMs(): number {
    const { delayMsMin, delayMsMax } = this.#parts.weather();
    return delayMsMin + this.#parts.random.next() * (delayMsMax - delayMsMin);
  }
}

interface Settle<T> {
  readonly resolve: (value: T) => void;
  readonly fail: (error: ServiceError) => void;
  readonly isOver: () => boolean;
}

interface Errand {
  readonly keys: readonly LimitKey[];
  readonly isAsking: boolean;
  readonly take: (reply: ServerReply) => void;
}

function failure(code: ErrorCode): ServiceError {
  return new ServiceError(code);
}

function unavailable(): ServiceError {
  return failure("STORE_UNAVAILABLE");
}

/** What stands before a key in the store: our prefix, and in a cluster a hash tag. */
const prefixPattern = /^headgate:(?:\{\d+\})?/;

function plainKey(key: string): LimitKey {
  return key.replace(prefixPattern, "") as LimitKey;
}

function decodeCall({ script, keys, args }: ScriptCall): ServerCall {
  const [bytes] = args;
  if (!Buffer.isBuffer(bytes)) throw new Error("our scripts take one packed argument");
  const plainKeys = keys.map(plainKey);
  return script === giveBackScript
    ? { kind: "giveBack", compensations: decodeCompensations(plainKeys, bytes) }
    : { kind: "take", batch: decodeBatch(plainKeys, bytes) };
}

function encoded(reply: Extract<ServerReply, { kind: "decided" | "givenBack" }>): Buffer {
  if (reply.kind === "decided") return encodeReply(reply.results);
  return encodeGivenBack(reply.givenBack);
}

function stepOf(call: ServerCall): "peek" | "charge" | "giveBack" {
  if (call.kind === "giveBack") return "giveBack";
  const isPeek = call.batch.every(({ charges }) => charges.every(({ cost }) => cost === 0));
  return isPeek ? "peek" : "charge";
}
