import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";

/** A certificate and its key, both as PEM. */
export interface TestCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Whom a certificate names, and how long it holds. */
export interface CertificateWish {
  /** Host names. */
  readonly names?: readonly string[];
  /** Addresses of version 4. */
  readonly addresses?: readonly string[];
  /** Example: `spiffe://cluster/ns/shop/sa/edge`. */
  readonly uris?: readonly string[];
  readonly emails?: readonly string[];
  /** Default "Test certificate". */
  readonly commonName?: string;
  /** Whether it ended a day ago. Default: it ends tomorrow. */
  readonly isExpired?: boolean;
  /** The length of an RSA key, for one that is too short. Default: an EC key. */
  readonly rsaBits?: number;
}

/**
 * An authority that lives for one test and signs certificates for servers and clients alike.
 *
 * Node reads certificates and makes none; what is written here is the little DER that one needs.
 * Source: RFC 5280, section 4.1.
 */
export class TestAuthority {
  /** What its friends trust, as PEM. */
  readonly certificate: string;
  readonly #name: string;
  readonly #privateKey: KeyObject;
  readonly #keyId: Buffer;

  /** @param name what it calls itself; two of one name are still two */
  constructor(name = "Test authority") {
    const { publicKey, privateKey } = createKeys();
    this.#name = name;
    this.#privateKey = privateKey;
    this.#keyId = keyIdOf(publicKey);
    // A certificate authority, which may sign certificates and nothing else.
    const constraints = criticalExtension(oids.basicConstraints, sequence(isTrue));
    const usage = criticalExtension(oids.keyUsage, tlv(0x03, Buffer.from([0x02, 0x04])));
    this.certificate = this.#sign({ name, publicKey, extensions: [constraints, usage] });
  }

  /** A certificate that this authority vouches for. */
  issue(wish: CertificateWish = {}): TestCertificate {
    const { publicKey, privateKey } = createKeys(wish.rsaBits);
    const names = [
      ...(wish.names ?? []).map((name) => tlv(0x82, Buffer.from(name, "latin1"))),
      ...(wish.emails ?? []).map((email) => tlv(0x81, Buffer.from(email, "latin1"))),
      ...(wish.uris ?? []).map((uri) => tlv(0x86, Buffer.from(uri, "latin1"))),
      ...(wish.addresses ?? []).map((address) => {
        return tlv(0x87, Buffer.from(address.split(".").map(Number)));
      }),
    ];
    const uses = sequence(tlv(0x06, oids.serverAuth), tlv(0x06, oids.clientAuth));
    const extensions = [
      extension(oids.extendedKeyUsage, uses),
      ...(names.length === 0 ? [] : [extension(oids.subjectAltName, sequence(...names))]),
    ];
    const { isExpired = false, commonName: name = "Test certificate" } = wish;
    return {
      certificate: this.#sign({ name, publicKey, extensions, isExpired }),
      key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    };
  }

  #sign({ name, publicKey, extensions, isExpired = false }: Unsigned): string {
    const nowMs = Date.now();
    const endMs = isExpired ? nowMs - dayMs : nowMs + dayMs;
    const ids = [
      extension(oids.subjectKeyIdentifier, tlv(0x04, keyIdOf(publicKey))),
      extension(oids.authorityKeyIdentifier, sequence(tlv(0x80, this.#keyId))),
    ];
    const algorithm = sequence(tlv(0x06, oids.ecdsaWithSha256));
    const body = sequence(
      tlv(0xa0, integer(Buffer.from([2]))),
      integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
      algorithm,
      distinguishedName(this.#name),
      sequence(utcTime(nowMs - 2 * dayMs), utcTime(endMs)),
      distinguishedName(name),
      publicKey.export({ type: "spki", format: "der" }),
      tlv(0xa3, sequence(...extensions, ...ids)),
    );
    const signature = sign("sha256", body, this.#privateKey);
    const bits = tlv(0x03, Buffer.concat([Buffer.from([0]), signature]));
    return new X509Certificate(sequence(body, algorithm, bits)).toString();
  }
}

/** The end of a certificate's time, in microseconds since 1970. */
export function expiryUs({ certificate }: TestCertificate): number {
  return Date.parse(new X509Certificate(certificate).validTo) * 1_000;
}

interface Unsigned {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly isExpired?: boolean;
}

const dayMs = 86_400_000;

/** Contents of object identifiers, already encoded. */
const oids = {
  commonName: Buffer.from("550403", "hex"),
  subjectKeyIdentifier: Buffer.from("551d0e", "hex"),
  keyUsage: Buffer.from("551d0f", "hex"),
  subjectAltName: Buffer.from("551d11", "hex"),
  basicConstraints: Buffer.from("551d13", "hex"),
  authorityKeyIdentifier: Buffer.from("551d23", "hex"),
  extendedKeyUsage: Buffer.from("551d25", "hex"),
  serverAuth: Buffer.from("2b06010505070301", "hex"),
  clientAuth: Buffer.from("2b06010505070302", "hex"),
  ecdsaWithSha256: Buffer.from("2a8648ce3d040302", "hex"),
} as const;

function createKeys(rsaBits?: number): {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
} {
  if (rsaBits !== undefined) return generateKeyPairSync("rsa", { modulusLength: rsaBits });
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function keyIdOf(publicKey: KeyObject): Buffer {
  return createHash("sha1")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest();
}

/** A tag, the length of what follows, and what follows. */
function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 0x80 ? [] : length < 0x100 ? [0x81] : [0x82, length >> 8];
  return Buffer.concat([Buffer.from([tag, ...size, length & 0xff]), value]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, ...parts);
}

function integer(bytes: Buffer): Buffer {
  return tlv(0x02, bytes);
}

const isTrue = Buffer.from([0x01, 0x01, 0xff]);

function extension(oid: Buffer, value: Buffer): Buffer {
  return sequence(tlv(0x06, oid), tlv(0x04, value));
}

function criticalExtension(oid: Buffer, value: Buffer): Buffer {
  return sequence(tlv(0x06, oid), isTrue, tlv(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  const attribute = sequence(tlv(0x06, oids.commonName), tlv(0x0c, Buffer.from(commonName)));
  return sequence(tlv(0x31, attribute));
}

/** `YYMMDDhhmmssZ`. */
function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/\D/g, "").slice(2, 14);
  return tlv(0x17, Buffer.from(`${digits}Z`));
}
