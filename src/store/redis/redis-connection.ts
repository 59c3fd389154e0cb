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

/** Purpose of a connection. Each kind of work has its own, so that it never waits for another. */
export type ConnectionRole = "decision" | "fleet" | "background";

/** A role, or a sentinel, which holds no limits but knows the address of the Redis that does. */
export type RedisPeer = ConnectionRole | "sentinel";

/** Events of connections. They contain nothing from callers, keys or credentials. */
export type RedisEvent =
  | { readonly kind: "redisConnected"; readonly role: RedisPeer }
  | { readonly kind: "redisLost"; readonly role: RedisPeer }
  /** Closed for good by this process: the server has left, or the process stops. */
  | { readonly kind: "redisClosed"; readonly role: RedisPeer }
  /** The next attempt. Attempts are counted since the server's last answer. */
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
  /** TLS settings such as certificates, if the target uses TLS. */
  readonly tls?: TlsSource;
  /** Whether to disconnect at once from a server that reports it is no primary. Default: false. */
  readonly isPrimaryOnly?: boolean;
  /** Shown by CLIENT LIST, followed by the role. */
  readonly clientName: string;
  /** Maximum number of calls with an outstanding reply, including late ones. More fail at once. */
  readonly callsInFlightMax: number;
  /** Maximum wait of one call, whatever its deadline. Default and maximum: `callMsMax`. */
  readonly timeoutMs?: number;
  /** How long a server that owes a reply may be silent. Default: `defaultSilenceMsMax`. */
  readonly silenceMsMax?: number;
  /** Maximum wait before a reconnect, at least twice `reconnectMsMin`. */
  readonly reconnectMsMax: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: (event: RedisEvent) => void;
}

/** Minimum wait before a reconnect. Each wait lies in the second half of a span that doubles. */
export const reconnectMsMin = 100;

/** Maximum wait of one call, whatever its deadline. Timers do not support arbitrary durations. */
export const callMsMax = 60_000;

/** Maximum loads of a script per call: other clients may flush the server's scripts in between. */
const scriptLoadsMax = 10;

/** One call that is being sent. */
interface Sending {
  readonly call: ScriptCall;
  readonly isTooLate: () => boolean;
  readonly isAsking?: boolean;
}

/**
 * One connection to one Redis server that reconnects until it is closed. It never repeats a call
 * that the server may have executed, neither after a time-out nor after a lost connection. Only a
 * script that the server does not know is loaded and run again, within the same deadline.
 */
export class RedisConnection implements StoreConnection {
  readonly #options: RedisConnectionOptions;
  readonly #redis: Redis;
  readonly #silence: SilenceWatch;
  readonly #waiting = new Set<(error: ServiceError) => void>();
  /** The server's name for each script. Source: EVALSHA. */
  readonly #sha1s = new WeakMap<StoreScript, string>();
  #inFlightCount = 0;
  #attempt = 0;
  #isClosed = false;
  #wasReady = false;
  #isCorked = false;
  #cancelRevival: Cancel | undefined;
  /** Whether the connection uses the configured database. */
  #hasDatabase = true;
  /** Whether the server is confirmed to be the primary, if that is required. */
  #isConfirmed = true;
  /** Why there is no usable connection, if the server gave a reason. */
  #refusal: ServiceError | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#redis = new Redis(libraryOptions(options, () => this.#nextDelayMs()));
    this.#silence = this.#watchSilence(options);
    this.#listen();
  }

  /** Number of calls with an outstanding reply, including calls that have timed out. */
  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  /**
   * Runs a script once. Rejects with STORE_TIMEOUT at the deadline (the script may still run), with
   * STORE_UNAVAILABLE at once if there is no connection or too many calls are in flight (it does
   * not run), and with the code for the server's error.
   */
  run(call: ScriptCall): Promise<ScriptReply> {
    return this.#within(call.deadlineMs, (isTooLate) => this.#send({ call, isTooLate }));
  }

  /**
   * Like `run`, on a node of a cluster that is importing the keys' slot and serves it only to
   * redirected clients. Source: ASKING.
   */
  runAsking(call: ScriptCall): Promise<ScriptReply> {
    return this.#within(call.deadlineMs, (isTooLate) => {
      return this.#send({ call, isTooLate, isAsking: true });
    });
  }

  /** Returns which node serves which slots, as seen by this node. Source: CLUSTER SLOTS. */
  clusterSlots(deadlineMs: number): Promise<unknown> {
    return this.#within(deadlineMs, () => this.#redis.callBuffer("cluster", ["slots"]));
  }

  /** Sends a SENTINEL command with these words. The reply consists of bytes and numbers. */
  sentinel(words: readonly string[], deadlineMs: number): Promise<unknown> {
    return this.#within(deadlineMs, () => this.#redis.callBuffer("sentinel", [...words]));
  }

  /** Drops the connection and reconnects. Calls in flight fail, and may have run. */
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

  /** Closes the connection for good. Calls in flight reject with STORE_CLOSED. */
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

  /** Sends a script. One that the server does not know did not run, so running it again is safe. */
  async #send({ call, isTooLate, isAsking = false }: Sending): Promise<ScriptReply> {
    const { script, keys, args } = call;
    const words = [this.#sha1Of(script), String(keys.length), ...keys, ...args];
    const evaluate = (): Promise<unknown> => {
      this.#writeTogether();
      // ASKING applies to the next command only. If ASKING fails, that command fails as well.
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
      // One write: the server runs them in this order, most likely without a flush in between.
      this.#writeTogether();
      const loaded = this.#redis.callBuffer("script", ["load", script.text]);
      asked = evaluate();
      // If loading fails, its error has the reason; the error of the second run does not.
      asked.catch(() => {});
      await loaded;
    }
  }

  /** Combines the sends of a microtask turn into one write: a batch is one script per hash tag. */
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
      // The library would continue in database 0, which may contain other applications' keys.
      if (isSelectReply(error)) this.#hasDatabase = false;
      const failure = toStoreError(error);
      if (isLastingRefusal(failure)) this.#refusal = failure;
      this.#tellFailure(failure);
    });
    this.#redis.on("end", () => this.#revive());
  }

  /** Records why calls fail until the next server: the library leaves a replica at once. */
  #noteReadOnly(failure: ServiceError): void {
    if (this.#refusal?.code === failure.code) return;
    this.#refusal = failure;
    this.#tellFailure(failure);
  }

  #tellFailure({ code, message }: ServiceError): void {
    const { role, onEvent } = this.#options;
    if (!this.#isClosed) onEvent({ kind: "redisFailed", role, code, message });
  }

  /** Checks that this is a primary: a replica may accept writes and lose them. Source: ROLE. */
  #confirmPrimary(): void {
    const { role, onEvent } = this.#options;
    const { stream } = this.#redis;
    this.#isConfirmed = false;
    this.#silence.begin();
    const settle = (isPrimary: boolean): void => {
      // The reply of an earlier connection is about another server.
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
      // A user without permission for ROLE learns it from READONLY.
      () => settle(true),
    );
  }

  /** Replaces the library's own time-out, which is measured by the clock: see `SilenceWatch`. */
  #watchSilence({ clock, silenceMsMax }: RedisConnectionOptions): SilenceWatch {
    return new SilenceWatch({
      clock,
      ...(silenceMsMax === undefined ? {} : { silenceMsMax }),
      isOwed: () => this.#redis.status !== "ready" || !this.#isConfirmed || this.#inFlightCount > 0,
      arrivedBytes: () => this.#redis.stream.bytesRead,
      onSilence: () => this.#redis.stream.destroy(new Error("the server does not answer")),
    });
  }

  /** Reconnects after the library gives up because it cannot create a socket (bad certificates). */
  #revive(): void {
    if (this.#isClosed) return;
    this.#cancelRevival = this.#options.clock.schedule(this.#nextDelayMs(), () => {
      this.#redis.connect().catch(() => {
        // Reported by the error event, and followed by another "end".
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
