import { createHash, createHmac, pbkdf2, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../core/base/errors.js";
import { saslAuthenticate, saslHandshake } from "./kafka-apis.js";
import type { KafkaConnection } from "./kafka-connection.js";
import { malformed } from "./kafka-fields.js";

/** How a client authenticates, by Kafka's names. */
export type KafkaMechanism = "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512";

/** A user of a cluster. */
export interface KafkaLogin {
  readonly mechanism: KafkaMechanism;
  readonly user: string;
  readonly password: string;
}

/**
 * Iterations that a broker may request: fewer reveal the password, more take too much time. Kafka
 * uses 4,096 to 16,384.
 */
export const scramIterationsMin = 4_096;
/** See `scramIterationsMin`. */
export const scramIterationsMax = 65_536;

/**
 * Authenticates a new connection. With SCRAM, the broker has to prove that it knows the password.
 *
 * @param nonce unpredictable, of printable ASCII without a comma
 * @throws ServiceError SIGNAL_REFUSED if a side is not who it claims to be; see `ask`
 */
export async function logIn(
  connection: Pick<KafkaConnection, "ask">,
  { mechanism, user, password }: KafkaLogin,
  nonce: string,
): Promise<void> {
  await connection.ask(saslHandshake, mechanism);
  if (mechanism === "PLAIN") {
    await connection.ask(saslAuthenticate, `\0${user}\0${password}`);
    return;
  }
  const hash = mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512";
  const scram = new ScramExchange({ hash, user, password, nonce });
  const challenge = await connection.ask(saslAuthenticate, scram.first);
  const proof = await scram.prove(challenge);
  scram.verify(await connection.ask(saslAuthenticate, proof));
}

interface ScramParts extends Omit<KafkaLogin, "mechanism"> {
  readonly hash: "sha256" | "sha512";
  readonly nonce: string;
}

/**
 * A client's side of SCRAM without channel binding. Kafka does not apply SASLprep to names and
 * passwords, and uses their UTF-8 as it is.
 *
 * Source: RFC 5802, sections 3 and 5; RFC 7677 for SHA-256.
 */
export class ScramExchange {
  readonly #parts: ScramParts;
  readonly #firstBare: string;
  #serverSignature: Buffer | undefined;

  constructor(parts: ScramParts) {
    this.#parts = parts;
    const user = parts.user.replaceAll("=", "=3D").replaceAll(",", "=2C");
    this.#firstBare = `n=${user},r=${parts.nonce}`;
  }

  /** The first message of the client. */
  get first(): string {
    return `n,,${this.#firstBare}`;
  }

  /** Returns the client's last message. @throws ServiceError SIGNAL_REFUSED, SIGNAL_MALFORMED */
  async prove(challenge: string): Promise<string> {
    const { hash, nonce } = this.#parts;
    const found = /^r=([!-+\--~]{1,512}),s=([A-Za-z0-9+/]{1,512}={0,2}),i=(\d{1,9})$/.exec(
      challenge,
    );
    const [, both = malformed(), salt = malformed(), written = malformed()] = found ?? [];
    const iterations = Number(written);
    if (iterations < scramIterationsMin || iterations > scramIterationsMax) {
      const bounds = `${scramIterationsMin} to ${scramIterationsMax}`;
      throw new ServiceError("SIGNAL_REFUSED", `SCRAM iterations are not within ${bounds}.`);
    }
    if (!both.startsWith(nonce) || both.length === nonce.length) return malformed();
    const salted = await saltedPassword(this.#parts, Buffer.from(salt, "base64"), iterations);
    const mac = (key: Buffer, text: string) => createHmac(hash, key).update(text).digest();
    const last = `c=biws,r=${both}`;
    const signed = `${this.#firstBare},${challenge},${last}`;
    this.#serverSignature = mac(mac(salted, "Server Key"), signed);
    const clientKey = mac(salted, "Client Key");
    const signature = mac(createHash(hash).update(clientKey).digest(), signed);
    const proof = clientKey.map((byte, index) => byte ^ (signature[index] ?? 0));
    return `${last},p=${Buffer.from(proof).toString("base64")}`;
  }

  /** Checks the last message of the broker. @throws ServiceError SIGNAL_REFUSED */
  verify(last: string): void {
    const expected = this.#serverSignature;
    const signature = Buffer.from(
      /^v=([A-Za-z0-9+/]{1,512}={0,2})/.exec(last)?.[1] ?? "",
      "base64",
    );
    const isRight = signature.length === expected?.length && timingSafeEqual(signature, expected);
    if (isRight) return;
    throw new ServiceError("SIGNAL_REFUSED", "The broker does not know the password of this user.");
  }
}

/** Derives the salted password. Takes milliseconds, in a thread of Node's pool. */
function saltedPassword(
  { password, hash }: ScramParts,
  salt: Buffer,
  iterations: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    pbkdf2(password, salt, iterations, hash === "sha256" ? 32 : 64, hash, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}
