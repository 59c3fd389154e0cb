import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { XdsTlsChoice } from "../../../../src/app/config/xds-choice.js";
import { readXdsCredentials, xdsTlsFileBytesMax } from "../../../../src/app/tls/xds-credentials.js";
import { TestAuthority } from "../../../support/certificates.js";

const authority = new TestAuthority();
const own = authority.issue({ names: ["client"] });

let folder: string;
let choice: XdsTlsChoice;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-xds-"));
  const file = async (setting: string, text: string) => {
    const path = join(folder, setting);
    await writeFile(path, text);
    return { setting, path };
  };
  choice = {
    authority: await file("CA", authority.certificate),
    identity: {
      certificate: await file("CERT", own.certificate),
      key: await file("KEY", own.key),
    },
    serverName: "plane",
  };
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe("readXdsCredentials()", () => {
  it("reads what is named, and nothing else", () => {
    expect(readXdsCredentials(choice)).toEqual({
      authority: authority.certificate,
      identity: { certificate: own.certificate, key: own.key },
      serverName: "plane",
    });
    expect(readXdsCredentials({})).toEqual({});
  });

  it.each([
    ["CA", "no PEM", "hello", "CA names a file that is not PEM"],
    ["CERT", "another's certificate", authority.certificate, "OpenSSL rejects CERT, KEY, CA"],
    ["KEY", "another's key", authority.issue().key, "OpenSSL rejects CERT, KEY, CA"],
    ["CERT", "a broken one", own.certificate.slice(0, 200), "OpenSSL rejects CERT, KEY, CA"],
  ])("says what is wrong when %s holds %s", async (name, _what, text, words) => {
    await writeFile(join(folder, name), text);
    expect(() => readXdsCredentials(choice)).toThrow(words);
  });

  it("says which file cannot be read", async () => {
    await rm(join(folder, "KEY"));
    const words = "KEY names a file that cannot be read: no such file or directory";
    expect(() => readXdsCredentials(choice)).toThrow(words);
  });

  it(`reads files of ${xdsTlsFileBytesMax} bytes, and no larger ones`, async () => {
    const path = join(folder, "CA");
    await writeFile(path, authority.certificate.padEnd(xdsTlsFileBytesMax, "\n"));
    expect(readXdsCredentials(choice).authority).toHaveLength(xdsTlsFileBytesMax);
    await truncate(path, xdsTlsFileBytesMax + 1);
    const words = `CA names a file of more than ${xdsTlsFileBytesMax} bytes`;
    expect(() => readXdsCredentials(choice)).toThrow(words);
  });
});
