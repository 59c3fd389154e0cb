import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogEvent, Logger } from "../../../../src/app/base/logger.js";
import type { TlsMaterial } from "../../../../src/app/tls/tls-files.js";
import { TlsReloader } from "../../../../src/app/tls/tls-reloader.js";
import type { Clock } from "../../../../src/core/base/clock.js";
import { TestAuthority } from "../../../support/certificates.js";
import { realClock } from "../../../support/real-clock.js";
import { replaceFile } from "../../../support/replace-file.js";
import { TlsFolder } from "../../../support/tls-folder.js";
import { waitFor } from "../../../support/wait.js";
import { watchClock } from "../../../support/watch-clock.js";

const authority = new TestAuthority();
const first = authority.issue();
const second = authority.issue();
const expired = authority.issue({ isExpired: true });

let folder: string;
let files: TlsFolder;
let events: LogEvent[];
let sentences: string[];
let reloaders: TlsReloader[];
let loaded: TlsMaterial[];

const note = (event: LogEvent, sentence: string): void => {
  events.push(event);
  sentences.push(sentence);
};
const logger: Logger = { debug: note, info: note, warn: note, error: note };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-tls-"));
  files = new TlsFolder(folder);
  events = [];
  sentences = [];
  reloaders = [];
  loaded = [];
});

afterEach(async () => {
  for (const reloader of reloaders) reloader.close();
  await rm(folder, { recursive: true });
});

function create(clock: Clock = watchClock): TlsReloader {
  const reloader = new TlsReloader({ choice: files.choice("known"), clock, logger });
  reloaders.push(reloader);
  return reloader;
}

async function watching(): Promise<TlsReloader> {
  const reloader = create();
  expect((await reloader.look()).kind).toBe("loaded");
  reloader.watch((material) => loaded.push(material));
  return reloader;
}

function names(): readonly string[] {
  return events.map(({ event }) => event);
}

function active(certificate: string): Promise<unknown> {
  return waitFor("the new one is active", () => loaded.at(-1)?.certificate === certificate);
}

/** The real clock, moved. */
function clockAhead(aheadUs: () => number): Clock {
  return { ...realClock, epochUs: () => realClock.epochUs() + aheadUs() };
}

const dayUs = 86_400_000_000;

describe("TlsReloader", () => {
  beforeEach(() => files.write({ server: first, clientAuthority: authority.certificate }));

  it("loads once, and says when the certificate expires", async () => {
    const reloader = create();
    expect(reloader.status).toMatchObject({ expiryEpochUs: 0, loadedCount: 0 });
    const look = await reloader.look();
    const material = look.kind === "loaded" ? look.material : undefined;
    expect(material?.certificate).toBe(first.certificate);
    expect(await reloader.look()).toEqual({ kind: "unchanged" });
    expect(reloader.status).toEqual({
      expiryEpochUs: material?.expiryEpochUs,
      isStale: false,
      loadedCount: 1,
      refusedCount: 0,
    });
    expect(names()).toEqual(["tlsCertificateLoaded"]);
  });

  it("tells the caller what is wrong at the start, and logs nothing", async () => {
    await rm(files.keyPath);
    const reloader = create();
    expect(await reloader.look()).toMatchObject({ kind: "refused", problems: [{}] });
    expect(reloader.status).toMatchObject({ isStale: true, refusedCount: 1 });
    expect(events).toEqual([]);
  });

  it("takes a pair that is written in place", async () => {
    await watching();
    await files.write({ server: second });
    await active(second.certificate);
  });

  it("takes a pair that Kubernetes swaps in, again and again", async () => {
    await rm(folder, { recursive: true });
    const contents = { clientAuthority: authority.certificate };
    const mounted = { server: first, ...contents };
    await new TlsFolder(folder).write(mounted);
    await files.swap("one", mounted);
    await watching();
    await files.swap("two", { server: second, ...contents });
    await active(second.certificate);
    await files.swap("three", { server: first, ...contents });
    await active(first.certificate);
  });

  it("takes new authorities of clients", async () => {
    await watching();
    const other = new TestAuthority();
    await writeFile(files.authorityPath, other.certificate);
    await waitFor("they are active", () => loaded.at(-1)?.clientAuthority === other.certificate);
  });

  it("keeps the old pair while a new one is half written, until it is whole", async () => {
    const reloader = await watching();
    await replaceFile(files.certificatePath, second.certificate);
    await waitFor("it is refused", () => reloader.status.isStale);
    expect(loaded).toEqual([]);
    expect(events.at(-1)).toMatchObject({
      event: "tlsCertificateRefused",
      problems: [expect.stringContaining("GRPC_SERVER_TLS_KEY does not belong")],
    });
    await replaceFile(files.keyPath, second.key);
    await active(second.certificate);
    expect(reloader.status).toMatchObject({ isStale: false, loadedCount: 2, refusedCount: 1 });
  });

  it("reports files that are wrong once, with what to do, and none of their text", async () => {
    const reloader = create();
    await reloader.look();
    await files.write({ server: { certificate: "nonsense-73", key: second.key } });
    expect((await reloader.look()).kind).toBe("refused");
    expect((await reloader.look()).kind).toBe("unchanged");
    expect(names()).toEqual(["tlsCertificateLoaded", "tlsCertificateRefused"]);
    expect(sentences.at(-1)).toMatch(/the old ones stay active.*GRPC_SERVER_TLS_CERT/s);
    expect(JSON.stringify([events, sentences])).not.toContain("nonsense-73");
    expect(reloader.status).toMatchObject({ isStale: true, refusedCount: 1 });
  });

  it("calls the old pair good again when its files are back", async () => {
    const reloader = create();
    await reloader.look();
    await rm(files.keyPath);
    await reloader.look();
    await writeFile(files.keyPath, first.key);
    expect((await reloader.look()).kind).toBe("loaded");
    expect(reloader.status.isStale).toBe(false);
  });

  it("refuses an expired certificate in place of one that is valid", async () => {
    const reloader = create();
    await reloader.look();
    await files.write({ server: expired });
    expect(await reloader.look()).toEqual({
      kind: "refused",
      problems: ["GRPC_SERVER_TLS_CERT names a certificate that has expired; renew it"],
    });
  });

  it("starts with an expired certificate, and says so", async () => {
    await files.write({ server: expired });
    const reloader = create();
    expect((await reloader.look()).kind).toBe("loaded");
    expect(names()).toEqual(["tlsCertificateLoaded", "tlsCertificateExpired"]);
    expect(sentences.at(-1)).toContain("GRPC_SERVER_TLS_CERT has expired, so clients reject it");
    await files.write({ server: authority.issue({ isExpired: true }) });
    expect((await reloader.look()).kind).toBe("loaded");
  });

  it("says once that the active certificate has expired meanwhile", async () => {
    let aheadUs = 0;
    const reloader = create(clockAhead(() => aheadUs));
    await reloader.look();
    aheadUs = 2 * dayUs;
    await reloader.look();
    await reloader.look();
    expect(names()).toEqual(["tlsCertificateLoaded", "tlsCertificateExpired"]);
  });

  it("says that a certificate is not valid yet", async () => {
    await create(clockAhead(() => -3 * dayUs)).look();
    expect(names()).toEqual(["tlsCertificateLoaded", "tlsCertificateEarly"]);
  });

  it("looks no more once it is closed", async () => {
    const reloader = await watching();
    reloader.close();
    await files.write({ server: second });
    await reloader.look();
    expect(loaded).toEqual([]);
  });

  it("tells nothing of a look that was under way when it was closed", async () => {
    const reloader = create();
    await reloader.look();
    await rm(files.keyPath);
    const look = reloader.look();
    reloader.close();
    expect(await look).toEqual({ kind: "unchanged" });
    expect(names()).toEqual(["tlsCertificateLoaded"]);
  });
});
