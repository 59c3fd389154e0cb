import { createHash, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { readErrorWords } from "../config/policy-files.js";
import type { NamedFile, TlsChoice } from "../config/tls-choice.js";

/** The files of a TLS server, read and checked. */
export interface TlsMaterial {
  /** PEM texts. */
  readonly certificate: string;
  readonly key: string;
  readonly clientAuthority?: string;
  /** End of the server certificate's validity, in microseconds since 1970. */
  readonly expiryEpochUs: number;
  /** Beginning of its validity. */
  readonly beginEpochUs: number;
}

/** Contents of the files, or all problems with them. `version` identifies the texts. */
export type ReadTls =
  | { readonly kind: "material"; readonly material: TlsMaterial; readonly version: string }
  | { readonly kind: "problems"; readonly problems: readonly string[]; readonly version: string };

/** Maximum size of a file in bytes. The authorities of a whole operating system need half of it. */
export const tlsFileBytesMax = 524_288;

/**
 * The suites of TLS 1.3, and those of 1.2 that HTTP/2 does not forbid: a fresh key for each
 * connection, and authenticated encryption. Source: RFC 9113, section 9.2.2 and appendix A.
 */
const cipherSuites = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/** Returns the settings of new connections with this material. */
export function secureContextOptions(material: TlsMaterial): SecureContextOptions {
  const { certificate, key, clientAuthority } = material;
  return {
    cert: certificate,
    key,
    // Configured authorities replace the public ones: a client whose certificate only a public
    // authority signed is not trusted. (envoyproxy/ratelimit adds the two.)
    ...(clientAuthority === undefined ? {} : { ca: clientAuthority }),
    minVersion: "TLSv1.2",
    ciphers: cipherSuites,
  };
}

/**
 * Reads certificate, key and authorities, and checks that a server can use them. Also reads expired
 * ones: the caller decides about them. Problems name settings, never the contents of a file.
 */
export async function readTlsFiles(choice: TlsChoice): Promise<ReadTls> {
  const problems: string[] = [];
  const certificate = await readText(choice.certificate, problems);
  const key = await readText(choice.key, problems);
  const { clientAuthority: authorityFile } = choice;
  const authority = authorityFile && (await readText(authorityFile, problems));
  const version = versionOf([certificate, key, authority, ...problems]);
  if (certificate === undefined || key === undefined || problems.length > 0) {
    return { kind: "problems", problems, version };
  }
  const chain = parseCertificates(choice.certificate, { text: certificate, problems });
  const privateKey = parseKey(choice.key, { text: key, problems });
  const [server] = chain;
  if (server !== undefined && privateKey !== undefined) {
    checkPair(choice, { chain, privateKey, problems });
  }
  if (authorityFile !== undefined && authority !== undefined) {
    checkAuthorities(authorityFile, { text: authority, problems });
  }
  if (server === undefined || problems.length > 0) return { kind: "problems", problems, version };
  const material: TlsMaterial = {
    certificate,
    key,
    ...(authority === undefined ? {} : { clientAuthority: authority }),
    beginEpochUs: Date.parse(server.validFrom) * 1_000,
    expiryEpochUs: Date.parse(server.validTo) * 1_000,
  };
  const refusal = tryContext(choice, material);
  if (refusal !== undefined) return { kind: "problems", problems: [refusal], version };
  return { kind: "material", material, version };
}

async function readText({ setting, path }: NamedFile, problems: string[]) {
  try {
    const found = await stat(path);
    if (!found.isFile()) problems.push(`${setting} names something that is not a file`);
    else if (found.size > tlsFileBytesMax) {
      problems.push(`${setting} names a file of more than ${tlsFileBytesMax} bytes`);
    } else return await readFile(path, "latin1");
  } catch (error) {
    const words = readErrorWords(error);
    problems.push(`${setting} names a file that cannot be read: ${words}; mount it or correct it`);
  }
  return undefined;
}

/** Returns a version that identifies the texts. It does not reveal the key. */
function versionOf(texts: readonly (string | undefined)[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text === undefined ? "-" : `${text.length}:${text}`);
  return hash.digest("hex");
}

interface Checked {
  readonly text: string;
  readonly problems: string[];
}

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function parseCertificates(
  { setting }: NamedFile,
  { text, problems }: Checked,
): readonly X509Certificate[] {
  const blocks = text.match(certificatePattern) ?? [];
  if (blocks.length === 0) {
    const hint = text.includes("PRIVATE KEY") ? "it holds a private key" : "it must be PEM text";
    problems.push(`${setting} names a file without a certificate: ${hint}`);
    return [];
  }
  const certificates: X509Certificate[] = [];
  for (const [i, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      problems.push(`${setting} names a file whose certificate number ${i + 1} cannot be read`);
      return [];
    }
  }
  return certificates;
}

function parseKey({ setting }: NamedFile, { text, problems }: Checked): KeyObject | undefined {
  // Checked first: without a passphrase, the library's error is about something else.
  if (/ENCRYPTED/.test(text)) {
    problems.push(`${setting} names a key with a passphrase; remove the passphrase`);
    return undefined;
  }
  try {
    return createPrivateKey(text);
  } catch {
    const hint = text.includes("BEGIN CERTIFICATE")
      ? "it holds a certificate"
      : "it must be PEM text, complete";
    problems.push(`${setting} names a file without a private key: ${hint}`);
    return undefined;
  }
}

function checkPair(
  { certificate, key }: TlsChoice,
  parts: {
    readonly chain: readonly X509Certificate[];
    readonly privateKey: KeyObject;
    readonly problems: string[];
  },
): void {
  const { chain, privateKey, problems } = parts;
  const at = chain.findIndex((one) => one.checkPrivateKey(privateKey));
  if (at === 0) return;
  if (at > 0) {
    const remedy = `put the server's certificate, now number ${at + 1}, first`;
    problems.push(`${certificate.setting} names certificates in the wrong order: ${remedy}`);
    return;
  }
  const remedy = "give both of one pair, or wait until both are written";
  problems.push(`${key.setting} does not belong to ${certificate.setting}: ${remedy}`);
}

/** Requires a root. Without one, no chain ends, and every client would be refused. */
function checkAuthorities(file: NamedFile, checked: Checked): void {
  const authorities = parseCertificates(file, checked);
  if (authorities.length === 0 || authorities.some((one) => one.checkIssued(one))) return;
  const remedy = "add the root that signed them";
  checked.problems.push(`${file.setting} names CA certificates without a root: ${remedy}`);
}

/** Returns further problems that OpenSSL finds: keys that are too short, outdated signatures. */
function tryContext({ certificate }: TlsChoice, material: TlsMaterial): string | undefined {
  try {
    createSecureContext(secureContextOptions(material));
    return undefined;
  } catch (error) {
    const code = String(Reflect.get(Object(error), "code"));
    const remedy = "make a new pair, for example of the kind ECDSA P-256";
    return `${certificate.setting} or its key is rejected by OpenSSL (${code}): ${remedy}`;
  }
}
