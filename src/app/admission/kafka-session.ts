import { readFile, stat } from "node:fs/promises";
import { isIP, connect as netConnect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import type { Clock, Random } from "../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../core/base/errors.js";
import { parseBroker } from "../../policy/services/broker-address.js";
import type { KafkaPlace } from "../../policy/services/kafka-source.js";
import { apiVersions, type KafkaApi, type KafkaBroker } from "../../wire/kafka/kafka-apis.js";
import { KafkaConnection } from "../../wire/kafka/kafka-connection.js";
import { type KafkaLogin, logIn } from "../../wire/kafka/kafka-login.js";
import { connectionFailure } from "../base/signal-http.js";

/** Parts of a session. */
export interface KafkaSessionParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly place: KafkaPlace;
  /** Directory of logins and certificates, in files whose names begin with a host's name. */
  readonly tokensPath: string | undefined;
  /** Monotonic time at which all connections end. */
  readonly deadlineMs: number;
}

/** Contents of a host's files. Read for each session, because they are renewed. */
interface KafkaCredentials {
  readonly login: KafkaLogin | undefined;
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
}

/** Maximum size of a file with a login or certificates, in bytes. */
export const kafkaFileBytesMax = 262_144;

/** Maximum number of brokers that one session connects to. */
export const kafkaConnectionsMax = 64;

/**
 * Connections to the brokers of one cluster, for one poll. It relies on nothing that brokers said
 * in earlier polls. Every wait ends at the deadline.
 */
export class KafkaSession {
  readonly #parts: KafkaSessionParts;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Map<string, Promise<KafkaConnection>>();
  readonly #cancel: () => void;
  readonly #ended: Promise<never>;
  #end: (failure: ServiceError) => void = () => {};
  #credentials: KafkaCredentials = noCredentials;

  constructor(parts: KafkaSessionParts) {
    this.#parts = parts;
    this.#ended = new Promise((_, reject) => {
      this.#end = reject;
    });
    // Callers that wait receive the error.
    this.#ended.catch(() => {});
    this.#cancel = parts.clock.schedule(this.#leftMs, () => this.#fail());
  }

  /**
   * Connects to the first of the policy's brokers that answers, and uses its host's credentials for
   * the whole cluster.
   *
   * @param first index of the broker to begin with
   * @param apis that the broker must serve
   * @returns the index of the broker too
   * @throws ServiceError the failure of the last broker
   */
  async bootstrap(
    first: number,
    apis: readonly KafkaApi<never, unknown>[],
  ): Promise<{ readonly connection: KafkaConnection; readonly index: number }> {
    const { brokers } = this.#parts.place;
    let failure = new ServiceError("SIGNAL_UNAVAILABLE");
    for (let step = 0; step < brokers.length; step += 1) {
      const index = (first + step) % brokers.length;
      const broker = parseBroker(brokers[index] ?? "");
      if (broker === undefined) continue;
      try {
        this.#credentials = await this.#readCredentials(broker.host);
        // A broker that does not answer leaves time for the others.
        const patienceMs = this.#leftMs / (brokers.length - step);
        const connection = await this.#within(patienceMs, this.#greet(broker, apis));
        return { connection, index };
      } catch (thrown) {
        failure = toServiceError(thrown);
      }
    }
    throw failure;
  }

  /** Returns the connection to a broker. It is opened when it is first needed. */
  to({ host, port }: KafkaBroker): Promise<KafkaConnection> {
    const name = `${host}:${port}`;
    const known = this.#connections.get(name);
    if (known !== undefined) return known;
    if (this.#connections.size >= kafkaConnectionsMax) {
      const words = `The partitions are on more than ${kafkaConnectionsMax} brokers.`;
      return Promise.reject(new ServiceError("SIGNAL_TOO_LARGE", words));
    }
    const opened = this.#open({ host, port });
    this.#connections.set(name, opened);
    return opened;
  }

  /** Closes all connections. */
  close(): void {
    this.#fail();
  }

  get #leftMs(): number {
    const { clock, deadlineMs } = this.#parts;
    return Math.max(0, deadlineMs - clock.monotonicMs());
  }

  #fail(): void {
    this.#cancel();
    this.#end(new ServiceError("SIGNAL_TIMEOUT"));
    for (const socket of this.#sockets) socket.destroy();
  }

  async #within<Value>(patienceMs: number, wanted: Promise<Value>): Promise<Value> {
    let cancel = (): void => {};
    const late = new Promise<never>((_, reject) => {
      const end = (): void => reject(new ServiceError("SIGNAL_TIMEOUT"));
      cancel = this.#parts.clock.schedule(patienceMs, end);
    });
    try {
      return await Promise.race([wanted, late, this.#ended]);
    } finally {
      cancel();
    }
  }

  async #greet(
    broker: KafkaBroker,
    apis: readonly KafkaApi<never, unknown>[],
  ): Promise<KafkaConnection> {
    const connection = await this.to(broker);
    requireVersions(await connection.ask(apiVersions, undefined), apis);
    return connection;
  }

  async #open(broker: KafkaBroker): Promise<KafkaConnection> {
    const { random } = this.#parts;
    const credentials = this.#credentials;
    const stream = await this.#dial(broker, credentials);
    const connection = new KafkaConnection({ stream, describe: connectionFailure });
    this.#ended.catch((failure: ServiceError) => connection.destroy(failure));
    const { login } = credentials;
    if (login !== undefined) await logIn(connection, login, random.id() + random.id());
    return connection;
  }

  #dial({ host, port }: KafkaBroker, { ca, cert, key }: KafkaCredentials): Promise<Socket> {
    const isTls = this.#parts.place.tls;
    const socket = isTls
      ? tlsConnect({
          host,
          port,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(ca === undefined ? {} : { ca }),
          ...(cert === undefined || key === undefined ? {} : { cert, key }),
          minVersion: "TLSv1.2",
        })
      : netConnect({ host, port });
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    // A poll that hangs does not keep the process alive.
    socket.unref();
    return new Promise((resolve, reject) => {
      socket.once(isTls ? "secureConnect" : "connect", () => resolve(socket));
      socket.on("error", (error) => reject(connectionFailure(error)));
      socket.once("close", () => reject(new ServiceError("SIGNAL_UNAVAILABLE")));
    });
  }

  /** Reads files of the policy's host: a policy names hosts, but does not assign credentials. */
  async #readCredentials(host: string): Promise<KafkaCredentials> {
    const { tls, mechanism } = this.#parts.place;
    if (!tls && mechanism === undefined) return noCredentials;
    const [text, ca, cert, key] = await Promise.all([
      mechanism === undefined ? undefined : this.#readFile(host),
      ...[".ca.pem", ".cert.pem", ".key.pem"].map((end) =>
        tls ? this.#readFile(`${host}${end}`) : undefined,
      ),
    ]);
    const login = mechanism && { mechanism, ...parseLogin(text?.toString("utf8") ?? "") };
    return { login, ca, cert, key };
  }

  /** Undefined if there is no such file. @throws ServiceError SIGNAL_UNCONFIGURED */
  async #readFile(name: string): Promise<Buffer | undefined> {
    const { tokensPath } = this.#parts;
    if (tokensPath === undefined || !/^[a-z0-9][a-z0-9._-]*$/.test(name)) return undefined;
    const path = join(tokensPath, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) return undefined;
    if (found.size <= kafkaFileBytesMax) return readFile(path).catch(() => undefined);
    const words = "A file of this broker's host in HEADGATE_SIGNAL_TOKENS is too large.";
    throw new ServiceError("SIGNAL_UNCONFIGURED", words);
  }
}

const noCredentials = { login: undefined, ca: undefined, cert: undefined, key: undefined };

/** @throws ServiceError SIGNAL_UNCONFIGURED */
function parseLogin(text: string): { readonly user: string; readonly password: string } {
  const [, user, password] = /^([^:\p{Cc}]{1,256}):(\P{Cc}{1,1024})\r?\n?$/u.exec(text) ?? [];
  if (user !== undefined && password !== undefined) return { user, password };
  throw new ServiceError(
    "SIGNAL_UNCONFIGURED",
    "The file of this broker's host in HEADGATE_SIGNAL_TOKENS is not user:password.",
  );
}

function requireVersions(
  ranges: ReadonlyMap<number, readonly [number, number]>,
  apis: readonly KafkaApi<never, unknown>[],
): void {
  for (const { key, version, name } of apis) {
    const [least, most] = ranges.get(key) ?? [0, -1];
    if (version >= least && version <= most) continue;
    const words = `The broker does not serve version ${version} of ${name}.`;
    throw new ServiceError("SIGNAL_REFUSED", words);
  }
}
