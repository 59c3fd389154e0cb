import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, ServiceError } from "../../core/base/errors.js";
import type { Dial, TlsSource } from "./dial.js";
import { libraryOptions } from "./library-options.js";
import { isLastingRefusal, isNoScriptReply, isSelectReply, toStoreError } from "./redis-error.js";
import type {
  ScriptCall,
  ScriptReply,
  StoreConnection,
  StoreScript,
} from "./scripts/connection.js";
import { SilenceWatch } from "./silence-watch.js";
import type { RedisLogin } from "./target.js";

/** What a connection is for; each has its own, so that one kind of work never waits for another. */
export type ConnectionRole = "decision" | "fleet" | "background";

/** The same, or to a sentinel, which holds no limits and knows where the Redis is that does. */
export type RedisPeer = ConnectionRole | "sentinel";

/** What happens to connections. Nothing in here comes from callers, keys or credentials. */
export type RedisEvent =
  | { readonly kind: "redisConnected"; readonly role: RedisPeer }
  | { readonly kind: "redisLost"; readonly role: RedisPeer }
  /** We ended it for good: its server has left, or this process stops. */
  | { readonly kind: "redisClosed"; readonly role: RedisPeer }
  /** The next attempt, counted from the last time the server answered. */
  | {
      readonly kind: "redisRetrying";
      readonly role: RedisPeer;
      readonly attempt: number;
      readonly delayMs: number;
    }
  /** An attempt or a connection failed. */
  | {
      readonly kind: "redisFailed";
      readonly role: RedisPeer;
      readonly code: ErrorCode;
      readonly message: string;
    };

interface RedisConnectionOptions {
  readonly role: RedisPeer;
  readonly target: RedisLogin & Pick<Dial, "address">;
  /** Certificates and the like when the target speaks TLS. */
  readonly tls?: TlsSource;
  /** Whether a server that says it is no primary is left at once. Default false. */
  readonly isPrimaryOnly?: boolean;
  /** Shown by CLIENT LIST, with the role behind it. */
  readonly clientName: string;
  /** Calls whose reply is outstanding, late ones included; more fail at once. */
  readonly callsInFlightMax: number;
  /** The longest that one call waits, whatever its deadline. Default and most: `callMsMax`. */
  readonly timeoutMs?: number;
  /** How long a server may be silent that owes a reply. Default `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** The longest wait before a reconnect, from twice `reconnectMsMin`. */
  readonly reconnectMsMax: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: (event: RedisEvent) => void;
}

/** The least wait before a reconnect. Each wait lies in the later half of a span that doubles. */
export const reconnectMsMin = 100;

/** The longest that one call waits, whatever its deadline; a timer knows no larger numbers. */
export const callMsMax = 60_000;

/** Times a script is loaded for one call: others may flush the server's scripts in between. */
const scriptLoadsMax = 10;

/** One call on its way. */
interface Sending {
  readonly call: ScriptCall;
  readonly isTooLate: () => boolean;
  readonly isAsking?: boolean;
}

/**
 * One connection to one Redis server that keeps coming back, and never repeats a call that the
 * server may have carried out: not after a time-out, not after a lost connection. Only a script
 * that the server does not know is loaded, and run again, inside the same deadline.
 */
export class RedisConnection implements StoreConnection {
  readonly #options: RedisConnectionOptions;
  readonly #redis: Redis;
  readonly #silence: SilenceWatch;
  readonly #waiting = new Set<(error: ServiceError) => void>();
  /** The name by which the server knows each script. Source: EVALSHA. */
  readonly #sha1s = new WeakMap<StoreScript, string>();
  #inFlightCount = 0;
  #attempt = 0;
  #isClosed = false;
  #wasReady = false;
  #isCorked = false;
  #cancelRevival: Cancel | undefined;
  /** Whether this connection is to the database that was asked for. */
  #hasDatabase = true;
  /** Whether the server behind this connection is the one that we want. */
  #isConfirmed = true;
  /** Why there is no usable connection, if the server said so. */
  #refusal: ServiceError | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#redis = new Redis(libraryOptions(options, () => this.#nextDelayMs()));
    this.#silence = this.#watchSilence(options);
    this.#listen();
  }

  /** Calls whose reply is outstanding, those included that nobody waits for any more. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /**
   * Runs a script once. Rejects with STORE_TIMEOUT at the deadline (it may still run), with
   * STORE_UNAVAILABLE at once when there is no connection or too much in flight already (it does
   * not run), and with what the server's error stands for.
   */
  run(call: ScriptCall): Promise<ScriptReply> {
    return this.#within(call.deadlineMs, (isTooLate) => this.#send({ call, isTooLate }));
  }

  /**
   * The same on a node of a cluster that takes over the keys' slot and serves it only to those who
   * were sent there. Source: ASKING.
   */
  runAsking(call: ScriptCall): Promise<ScriptReply> {
    return this.#within(call.deadlineMs, (isTooLate) => {
      return this.#send({ call, isTooLate, isAsking: true });
    });
  }

  /** Which node serves which slots, as this one sees it. Source: CLUSTER SLOTS. */
  clusterSlots(deadlineMs: number): Promise<unknown> {
    return this.#within(deadlineMs, () => this.#redis.callBuffer("cluster", ["slots"]));
  }

  /** Asks a sentinel something. The words after SENTINEL; what comes back is bytes and numbers. */
  sentinel(words: readonly string[], deadlineMs: number): Promise<unknown> {
    return this.#within(deadlineMs, () => this.#redis.callBuffer("sentinel", [...words]));
  }

  /** Drops the connection and makes it anew; what is in flight fails, and may have run. */
  reconnect(): void {
    if (!this.#isClosed) this.#redis.disconnect(true);
  }

  #within<T>(deadlineMs: number, send: (isTooLate: () => boolean) => Promise<T>): Promise<T> {
    const { clock, callsInFlightMax, timeoutMs = callMsMax } = this.#options;
    const leftMs = Math.min(deadlineMs - clock.monotonicMs(), timeoutMs, callMsMax);
    const refusal = this.#refusalNow(leftMs, callsInFlightMax);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      let isSettled = false;
      const settle = (): boolean => {
        const isFirst = !isSettled;
        isSettled = true;
        cancel();
        this.#waiting.delete(fail);
        return isFirst;
      };
      const fail = (error: ServiceError): void => {
        if (settle()) reject(error);
      };
      const cancel = clock.schedule(leftMs, () => fail(new ServiceError("STORE_TIMEOUT")));
      this.#waiting.add(fail);
      this.#inFlightCount += 1;
      this.#silence.begin();
      send(() => isSettled).then(
        (reply) => {
          this.#inFlightCount -= 1;
          this.#attempt = 0;
          if (settle()) resolve(reply);
        },
        (error: unknown) => {
          this.#inFlightCount -= 1;
          const failure = toStoreError(error);
          if (failure.code === "STORE_READ_ONLY") this.#noteReadOnly(failure);
          fail(failure);
        },
      );
    });
  }

  /** Drops the connection for good; what is in flight rejects with STORE_CLOSED. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelRevival?.();
    for (const fail of [...this.#waiting]) fail(new ServiceError("STORE_CLOSED"));
    this.#redis.disconnect();
    const { role, onEvent } = this.#options;
    onEvent({ kind: "redisClosed", role });
  }

  #refusalNow(leftMs: number, callsInFlightMax: number): ServiceError | undefined {
    if (this.#isClosed) return new ServiceError("STORE_CLOSED");
    if (!(leftMs > 0)) return new ServiceError("STORE_TIMEOUT");
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#redis.status !== "ready" || !this.#isConfirmed) {
      return new ServiceError("STORE_UNAVAILABLE");
    }
    if (this.#inFlightCount < callsInFlightMax) return undefined;
    return new ServiceError("STORE_UNAVAILABLE", "Too many calls are waiting for the connection.");
  }

  /** A script that the server does not know did not run, so to load it and ask again is safe. */
  async #send({ call, isTooLate, isAsking = false }: Sending): Promise<ScriptReply> {
    const { script, keys, args } = call;
    const words = [this.#sha1Of(script), String(keys.length), ...keys, ...args];
    const evaluate = (): Promise<unknown> => {
      this.#writeTogether();
      // It holds for one command, and what fails it fails that one too.
      if (isAsking) this.#redis.callBuffer("asking").catch(() => {});
      return this.#redis.callBuffer("evalsha", words);
    };
    let asked = evaluate();
    for (let loadCount = 0; ; loadCount += 1) {
      try {
        return toReply(await asked);
      } catch (error) {
        if (!isNoScriptReply(error) || loadCount === scriptLoadsMax || isTooLate()) throw error;
      }
      // In one write: the server takes them in this order, and hardly ever another's flush between.
      this.#writeTogether();
      const loaded = this.#redis.callBuffer("script", ["load", script.text]);
      asked = evaluate();
      // When loading fails, that says why; the answer behind it only says that it failed.
      asked.catch(() => {});
      await loaded;
    }
  }

  /** What one turn of the microtasks sends leaves in one write: a batch is a script a hash tag. */
  #writeTogether(): void {
    const { stream } = this.#redis;
    if (this.#isCorked || stream === undefined) return;
    this.#isCorked = true;
    stream.cork();
    queueMicrotask(() => {
      this.#isCorked = false;
      stream.uncork();
    });
  }

  #sha1Of(script: StoreScript): string {
    let sha1 = this.#sha1s.get(script);
    if (sha1 === undefined) {
      sha1 = createHash("sha1").update(script.text).digest("hex");
      this.#sha1s.set(script, sha1);
    }
    return sha1;
  }

  #listen(): void {
    const { role, onEvent } = this.#options;
    this.#redis.on("connect", () => {
      this.#hasDatabase = true;
      this.#silence.begin();
    });
    this.#redis.on("ready", () => {
      if (this.#hasDatabase) this.#refusal = undefined;
      this.#wasReady = true;
      if (this.#options.isPrimaryOnly === true) this.#confirmPrimary();
      else onEvent({ kind: "redisConnected", role });
    });
    this.#redis.on("close", () => {
      this.#silence.end();
      if (this.#wasReady && !this.#isClosed) onEvent({ kind: "redisLost", role });
      this.#wasReady = false;
    });
    this.#redis.on("error", (error: unknown) => {
      // The library would go on in database 0, where somebody else's keys may be.
      if (isSelectReply(error)) this.#hasDatabase = false;
      const failure = toStoreError(error);
      if (isLastingRefusal(failure)) this.#refusal = failure;
      this.#tellFailure(failure);
    });
    this.#redis.on("end", () => this.#revive());
  }

  /** The library leaves a replica at once; until the next server is met, calls may say why. */
  #noteReadOnly(failure: ServiceError): void {
    if (this.#refusal?.code === failure.code) return;
    this.#refusal = failure;
    this.#tellFailure(failure);
  }

  #tellFailure({ code, message }: ServiceError): void {
    const { role, onEvent } = this.#options;
    if (!this.#isClosed) onEvent({ kind: "redisFailed", role, code, message });
  }

  /** A replica may even take writes, and lose them. Source: ROLE. */
  #confirmPrimary(): void {
    const { role, onEvent } = this.#options;
    const { stream } = this.#redis;
    this.#isConfirmed = false;
    this.#silence.begin();
    const settle = (isPrimary: boolean): void => {
      // What a connection says that is gone by now is about another server.
      if (this.#redis.stream !== stream || this.#redis.status !== "ready") return;
      this.#isConfirmed = isPrimary;
      if (isPrimary) {
        onEvent({ kind: "redisConnected", role });
        return;
      }
      this.#tellFailure(
        new ServiceError("STORE_READ_ONLY", "The sentinels named it primary before it was one."),
      );
      this.reconnect();
    };
    this.#redis.callBuffer("role").then(
      (reply) => settle(Array.isArray(reply) && String(reply[0]) === "master"),
      // A user who may not ask finds out by READONLY.
      () => settle(true),
    );
  }

  /** Not the library's own time-out, which counts by the clock: see `SilenceWatch`. */
  #watchSilence({ clock, silenceMsMax }: RedisConnectionOptions): SilenceWatch {
    return new SilenceWatch({
      clock,
      ...(silenceMsMax === undefined ? {} : { silenceMsMax }),
      isOwed: () => this.#redis.status !== "ready" || !this.#isConfirmed || this.#inFlightCount > 0,
      arrivedBytes: () => this.#redis.stream.bytesRead,
      onSilence: () => this.#redis.stream.destroy(new Error("the server does not answer")),
    });
  }

  /** The library gives up when a socket cannot even be made (bad certificates): we do not. */
  #revive(): void {
    if (this.#isClosed) return;
    this.#cancelRevival = this.#options.clock.schedule(this.#nextDelayMs(), () => {
      this.#redis.connect().catch(() => {
        // Told by the error event, and followed by another "end".
      });
    });
  }

  #nextDelayMs(): number {
    const { random, reconnectMsMax, role, onEvent } = this.#options;
    const attempt = this.#attempt;
    this.#attempt += 1;
    const spanMs = Math.min(reconnectMsMin * 2 ** Math.min(attempt + 1, 16), reconnectMsMax);
    const delayMs = Math.round(spanMs * (0.5 + random.next() / 2));
    onEvent({ kind: "redisRetrying", role, attempt: attempt + 1, delayMs });
    return delayMs;
  }
}

function toReply(reply: unknown): ScriptReply {
  if (Buffer.isBuffer(reply) || typeof reply === "number") return reply;
  return undefined;
}
