import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StartFailure } from "../../../../src/app/base/failure.js";
import { type Logger, silentLogger } from "../../../../src/app/base/logger.js";
import { openRedisTls, redisTlsFileBytesMax } from "../../../../src/app/config/redis-tls.js";
import type { RedisTlsChoice } from "../../../../src/app/config/store-choice.js";
import { TestAuthority } from "../../../support/certificates.js";

const begin = "-----BEGIN CERTIFICATE-----";
const authority = new TestAuthority();
let folder: string;
let choice: RedisTlsChoice;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-redis-tls-"));
  const { certificate, key } = authority.issue();
  const certificatePath = write("tls.crt", certificate);
  const pair = { certificatePath, keyPath: write("tls.key", key) };
  choice = { authorityPath: write("ca.crt", authority.certificate), pair, skipsHostName: false };
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function refusalOf(given: RedisTlsChoice): string {
  try {
    openRedisTls(given, silentLogger);
  } catch (thrown) {
    if (thrown instanceof StartFailure) return thrown.message;
    throw thrown;
  }
  return "none";
}

describe("openRedisTls()", () => {
  it("makes the settings anew only when the files hold something else", () => {
    const source = openRedisTls(choice, silentLogger);
    const first = source();
    expect(source()).toBe(first);
    write("ca.crt", authority.certificate + new TestAuthority().certificate);
    expect(source()).not.toBe(first);
  });

  it("leaves out the check of the host name only where it is told to", () => {
    expect(openRedisTls(choice, silentLogger)()).not.toHaveProperty("checkServerIdentity");
    const options = openRedisTls({ ...choice, skipsHostName: true }, silentLogger)();
    expect(options).toHaveProperty("checkServerIdentity");
    expect(options).not.toHaveProperty("rejectUnauthorized");
  });

  it("needs no file at all", () => {
    expect(refusalOf({ skipsHostName: false })).toBe("none");
  });

  it.each<[string, string, RegExp]>([
    ["ca.crt", "", /^REDIS_TLS_CACERT .* without a complete certificate/],
    ["ca.crt", `${begin}\nAA`, /^REDIS_TLS_CACERT .* without a complete certificate/],
    ["ca.crt", `${begin}\nAA\n-----END CERTIFICATE-----`, /^REDIS_TLS_CACERT/],
    ["tls.crt", "hunter2", /do not match/],
    ["tls.key", "hunter2", /do not match/],
    // As they are for a moment while somebody writes them: Node would show no certificate then.
    ["tls.crt", "", /do not match/],
    ["tls.key", "", /do not match/],
  ])("refuses at the start a file %s of %j, by its setting", (name, text, words) => {
    write(name, text);
    const refusal = refusalOf(choice);
    expect(refusal).toMatch(words);
    expect(refusal).not.toMatch(/hunter2|headgate-redis-tls/);
  });

  it("refuses authorities of which the last is cut off", () => {
    write("ca.crt", authority.certificate + authority.certificate.slice(0, 200));
    expect(refusalOf(choice)).toMatch(/without a complete certificate/);
  });

  it("refuses at the start a file that is not there, and does not repeat its path", () => {
    const missing = { ...choice, authorityPath: join(folder, "none-73") };
    expect(refusalOf(missing)).toMatch(
      /^REDIS_TLS_CACERT names a file that cannot be read: no such file/,
    );
    expect(refusalOf(missing)).not.toContain("none-73");
  });

  it(`reads at most ${redisTlsFileBytesMax} bytes`, () => {
    const padding = (bytes: number) => authority.certificate.padEnd(bytes, "\n");
    write("ca.crt", padding(redisTlsFileBytesMax));
    expect(refusalOf(choice)).toBe("none");
    write("ca.crt", padding(redisTlsFileBytesMax + 1));
    expect(refusalOf(choice)).toMatch(/more than 524288 bytes$/);
  });

  it("keeps the last good files while new ones are not, and says so once", () => {
    const events: unknown[] = [];
    const note = (fields: object) => void events.push(Reflect.get(fields, "event"));
    const logger: Logger = { ...silentLogger, info: note, warn: note };
    const source = openRedisTls(choice, logger);
    const first = source();
    const next = authority.issue();
    write("tls.crt", next.certificate);
    expect([source(), source()]).toEqual([first, first]);
    expect(source()).toBe(first);
    expect(events).toEqual(["redisTlsRefused"]);
    write("tls.key", next.key);
    expect(source()).not.toBe(first);
    expect(events).toEqual(["redisTlsRefused", "redisTlsLoaded"]);
  });
});
