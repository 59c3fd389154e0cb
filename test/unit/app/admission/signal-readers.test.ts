import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  createSignalReader,
  signalJsonBytesMax,
  signalPageBytesMax,
  tokenBytesMax,
} from "../../../../src/app/admission/signal-readers.js";
import type { SignalChoice } from "../../../../src/app/config/signal-choice.js";
import { isServiceError } from "../../../../src/core/base/errors.js";
import { parseSeriesSelector } from "../../../../src/core/base/series-selector.js";
import type { SignalPlace } from "../../../../src/policy/services/signal-source.js";
import { realClock, realRandom } from "../../../support/real-clock.js";
import { SignalServer } from "../../../support/signal-server.js";
import { useStage } from "../../../support/stage.js";

const stage = useStage("test");

const pace = { everyMs: 10_000, timeoutMs: 10_000 };

/** What is read, or the code of why nothing is. */
async function read(
  place: SignalPlace,
  { choice = {}, keysMax }: { choice?: SignalChoice; keysMax?: number } = {},
): Promise<unknown> {
  const parts = { clock: realClock, random: realRandom, choice, store: undefined };
  const reader = createSignalReader(parts, { place, keysMax, ...pace });
  const readings = await reader.read(realClock.monotonicMs() + 10_000).catch((thrown: unknown) => {
    if (!isServiceError(thrown)) throw thrown;
    return thrown.code;
  });
  if (typeof readings === "string") return readings;
  return readings.kind === "whole" ? readings.reading : Object.fromEntries(readings.readings);
}

function prometheus(server: string | undefined, by?: string): SignalPlace {
  return { kind: "prometheus", query: 'sum(lag{a="b & c"})', server, by };
}

const answer = JSON.stringify({
  status: "success",
  data: { resultType: "vector", result: [{ metric: { db: "orders" }, value: [1, "55000"] }] },
});

describe("createSignalReader()", () => {
  it("asks the policy's Prometheus, below the path that it has", async () => {
    const server = await SignalServer.start(stage, answer);
    expect(await read(prometheus(`http://${server.authority}/prefix/`))).toBe(55_000);
    expect(await read(prometheus(`http://${server.authority}`, "db"), { keysMax: 1 })).toEqual({
      orders: 55_000,
    });
    const urls = server.questions.map(({ url }) => new URL(url, "http://a"));
    expect(urls.map(({ pathname }) => pathname)).toEqual(["/prefix/api/v1/query", "/api/v1/query"]);
    expect(urls[0]?.searchParams.get("query")).toBe('sum(lag{a="b & c"})');
  });

  it("asks the process's Prometheus where the policy names none, with its login", async () => {
    const server = await SignalServer.start(stage, answer);
    const url = `http://${server.authority}/`;
    const choice = { prometheus: { url, authorization: "Basic abc" } };
    expect(await read(prometheus(undefined), { choice })).toBe(55_000);
    expect(await read(prometheus(url), { choice })).toBe(55_000);
    // The policy's own URL gets none of it, even where it is the same.
    const reported = server.questions.map(({ authorization }) => authorization);
    expect(reported).toEqual(["Basic abc", undefined]);
  });

  it("says that it was not told whom to ask", async () => {
    expect(await read(prometheus(undefined))).toBe("SIGNAL_UNCONFIGURED");
    expect(await read({ kind: "redis", key: "lag" })).toBe("SIGNAL_UNCONFIGURED");
  });

  it("reads a JSON document, a metrics page and a fixed number", async () => {
    const server = await SignalServer.start(stage, '{"lag": {"orders": 3}}');
    const url = `http://${server.authority}/lag?of=a`;
    expect(await read({ kind: "http", url, pointer: ["lag", "orders"] })).toBe(3);
    expect(await read({ kind: "http", url, pointer: ["lag"] }, { keysMax: 5 })).toEqual({
      orders: 3,
    });
    server.say('lag{db="orders",p="0"} 1\nlag{db="orders",p="1"} 2\n');
    const select = parseSeriesSelector("lag");
    if (select === undefined) throw new Error("the test's selector is none");
    expect(await read({ kind: "metrics", url, select, by: undefined })).toBe(3);
    expect(await read({ kind: "metrics", url, select, by: "db" }, { keysMax: 5 })).toEqual({
      orders: 3,
    });
    expect(server.questions.at(-1)).toMatchObject({
      url: "/lag?of=a",
      accept: "text/plain;version=0.0.4",
    });
    expect(await read({ kind: "fixed", reading: 4 })).toBe(4);
  });

  it("reads documents and pages up to their bounds", async () => {
    const server = await SignalServer.start(stage);
    const url = `http://${server.authority}/`;
    const json: SignalPlace = { kind: "http", url, pointer: [] };
    server.say(`5${" ".repeat(signalJsonBytesMax - 1)}`);
    expect(await read(json)).toBe(5);
    server.say(`5${" ".repeat(signalJsonBytesMax)}`);
    expect(await read(json)).toBe("SIGNAL_TOO_LARGE");
    const page: SignalPlace = {
      kind: "metrics",
      url,
      select: { metric: "up", matchers: [] },
      by: undefined,
    };
    const line = `other ${"1".repeat(1_017)}\n`;
    const lines = line.repeat(signalPageBytesMax / line.length - 1);
    server.say(`${lines}up 1${" ".repeat(line.length - 5)}\n`);
    expect(await read(page)).toBe(1);
    server.say(`${lines}up 1${" ".repeat(line.length - 4)}\n`);
    expect(await read(page)).toBe("SIGNAL_TOO_LARGE");
  });

  it("sends the host's token, renewed at any time, where the process trusts the way", async () => {
    const server = await SignalServer.start(stage, answer);
    const url = `http://${server.authority}/`;
    const choice = { prometheus: { url }, tokensPath: stage.folder };
    const path = join(stage.folder, "127.0.0.1");
    expect(await read(prometheus(undefined), { choice })).toBe(55_000);
    await writeFile(path, "first.token==\n");
    await read(prometheus(undefined), { choice });
    await writeFile(path, "second-token");
    await read(prometheus(undefined), { choice });
    // A policy's URL in plaintext is no way that the process trusts.
    await read(prometheus(url), { choice });
    const reported = server.questions.map(({ authorization }) => authorization);
    expect(reported).toEqual([undefined, "Bearer first.token==", "Bearer second-token", undefined]);
  });

  it.each(["two words", "a\nb", "", "é", "x".repeat(tokenBytesMax + 1)])(
    "sends no token that is none (%#)",
    async (token) => {
      const server = await SignalServer.start(stage, answer);
      const url = `http://${server.authority}/`;
      await writeFile(join(stage.folder, "127.0.0.1"), token);
      const choice = { prometheus: { url }, tokensPath: stage.folder };
      expect(await read(prometheus(undefined), { choice })).toBe("SIGNAL_UNCONFIGURED");
      expect(server.questions).toEqual([]);
    },
  );
});
