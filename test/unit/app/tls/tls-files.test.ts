import { generateKeyPairSync } from "node:crypto";
import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  readTlsFiles,
  type TlsMaterial,
  tlsFileBytesMax,
} from "../../../../src/app/tls/tls-files.js";
import { expiryUs, TestAuthority } from "../../../support/certificates.js";
import { TlsFolder } from "../../../support/tls-folder.js";

const authority = new TestAuthority();
const pair = authority.issue({ names: ["headgate.shop"] });
const otherPair = authority.issue();

let folder: string;
let files: TlsFolder;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-tls-"));
  files = new TlsFolder(folder);
  await files.write({ server: pair, clientAuthority: authority.certificate });
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function material(): Promise<TlsMaterial> {
  const read = await readTlsFiles(files.choice("known"));
  if (read.kind === "problems") throw new Error(read.problems.join("\n"));
  return read.material;
}

async function problems(): Promise<readonly string[]> {
  const read = await readTlsFiles(files.choice("known"));
  return read.kind === "problems" ? read.problems : [];
}

describe("readTlsFiles()", () => {
  it("answers the texts and the times of the certificate", async () => {
    const read = await material();
    expect(read).toMatchObject({
      certificate: pair.certificate,
      key: pair.key,
      clientAuthority: authority.certificate,
    });
    expect(read.expiryEpochUs % 1_000_000).toBe(0);
    // Source: what the test's authority gives, three days.
    expect(read.expiryEpochUs - read.beginEpochUs).toBe(3 * 86_400_000_000);
  });

  it("takes a chain behind the certificate, and comments between", async () => {
    const text = `# mine\n${pair.certificate}# root\n${authority.certificate}`;
    await writeFile(files.certificatePath, text);
    expect((await material()).certificate).toBe(text);
  });

  it("reads an expired certificate: that is for others to judge", async () => {
    const expired = authority.issue({ isExpired: true });
    await files.write({ server: expired });
    expect((await material()).expiryEpochUs).toBe(expiryUs(expired));
  });

  it("has one version for the same texts, and another for others", async () => {
    const version = async (): Promise<string> => (await readTlsFiles(files.choice())).version;
    const first = await version();
    expect(await version()).toBe(first);
    await files.write({ server: otherPair });
    expect(await version()).not.toBe(first);
    await rm(files.keyPath);
    const broken = await version();
    expect(broken).not.toBe(first);
    expect(await version()).toBe(broken);
  });

  it("names every file that cannot be read, and no path", async () => {
    await rm(files.certificatePath);
    await rm(files.keyPath);
    await rm(files.authorityPath);
    await mkdir(files.authorityPath);
    const found = await problems();
    expect(found).toEqual([
      expect.stringMatching(/^GRPC_SERVER_TLS_CERT names a file that cannot be read: no such/),
      expect.stringMatching(/^GRPC_SERVER_TLS_KEY names a file that cannot be read: no such/),
      "GRPC_CLIENT_TLS_CACERT names something that is not a file",
    ]);
    expect(found.join()).not.toContain(folder);
  });

  it("reads files up to a size", async () => {
    await truncate(files.authorityPath, tlsFileBytesMax);
    expect(await problems()).toEqual([]);
    await truncate(files.authorityPath, tlsFileBytesMax + 1);
    expect(await problems()).toEqual([
      `GRPC_CLIENT_TLS_CACERT names a file of more than ${tlsFileBytesMax} bytes`,
    ]);
  });

  it("says that the two were swapped", async () => {
    await files.write({ server: { certificate: pair.key, key: pair.certificate } });
    expect(await problems()).toEqual([
      "GRPC_SERVER_TLS_CERT names a file without a certificate: it holds a private key",
      "GRPC_SERVER_TLS_KEY names a file without a private key: it holds a certificate",
    ]);
  });

  it.each([
    ["the start of a certificate", pair.certificate.slice(0, 200), "must be PEM text"],
    ["nothing", "", "must be PEM text"],
    [
      "a certificate that is none",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      "certificate number 1 cannot be read",
    ],
    [
      "a second one that is none",
      `${pair.certificate}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
      "certificate number 2 cannot be read",
    ],
  ])("refuses a certificate file that holds %s", async (_what, certificate, words) => {
    await files.write({ server: { certificate, key: pair.key } });
    expect(await problems()).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    ["the start of a key", pair.key.slice(0, 100), "must be PEM text, complete"],
    ["nothing", "", "must be PEM text, complete"],
    ["a key with a passphrase", encryptedKey(), "passphrase; remove the passphrase"],
  ])("refuses a key file that holds %s", async (_what, key, words) => {
    await files.write({ server: { certificate: pair.certificate, key } });
    expect(await problems()).toEqual([expect.stringContaining(words)]);
  });

  it("refuses the key of another certificate, as a pair that is half written has", async () => {
    await files.write({ server: { certificate: pair.certificate, key: otherPair.key } });
    expect(await problems()).toEqual([
      "GRPC_SERVER_TLS_KEY does not belong to GRPC_SERVER_TLS_CERT: give both of one pair, or " +
        "wait until both are written",
    ]);
  });

  it("names the place of the server's certificate when it is not the first", async () => {
    const certificate = `${authority.certificate}${pair.certificate}`;
    await files.write({ server: { certificate, key: pair.key } });
    expect(await problems()).toEqual([expect.stringContaining("now number 2, first")]);
  });

  it("refuses CA certificates without a root, which no chain could end at", async () => {
    await files.write({ server: pair, clientAuthority: otherPair.certificate });
    expect(await problems()).toEqual([expect.stringContaining("CA certificates without a root")]);
    const clientAuthority = `${otherPair.certificate}${authority.certificate}`;
    await files.write({ server: pair, clientAuthority });
    expect(await problems()).toEqual([]);
  });

  it("says what OpenSSL does not like about a pair", async () => {
    await files.write({ server: authority.issue({ rsaBits: 512 }) });
    expect(await problems()).toEqual([
      "GRPC_SERVER_TLS_CERT or its key is rejected by OpenSSL (ERR_SSL_EE_KEY_TOO_SMALL): make a " +
        "new pair, for example of the kind ECDSA P-256",
    ]);
  });
});

function encryptedKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" })
    .toString();
}
