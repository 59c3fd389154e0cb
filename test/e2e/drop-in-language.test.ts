import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { type DropIn, reported, startDropIn } from "../support/drop-in.js";
import { useStage } from "../support/stage.js";

/** Hits of yearly limits do not come back while a test runs. */
const policy = `domain: edge
descriptors:
  - key: whole
    value: language
    detailed_metric: true
    metadata: {team: edge, owners: [a, 1, 1.5, true, null], deep: {er: {is: x}}}
    rate_limit: {unit: day, requests_per_unit: 9}
    descriptors:
      - key: below
        value_to_metric: true
        quota_mode: true
        rate_limit: {unit: hour, requests_per_unit: 8}
  - key: flag
    value: true
    rate_limit: {unit: year, requests_per_unit: 7}
  - key: number
    value: 42
    rate_limit: {unit: year, requests_per_unit: 6}
  - {key: s, rate_limit: {unit: SECOND, requests_per_unit: 1}}
  - {key: m, rate_limit: {unit: Minute, requests_per_unit: 1}}
  - {key: h, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: d, rate_limit: {unit: dAy, requests_per_unit: 1}}
  - {key: w, rate_limit: {unit: week, requests_per_unit: 1}}
  - {key: mo, rate_limit: {unit: MONTH, requests_per_unit: 4294967295}}
  - {key: y, rate_limit: {unit: year, requests_per_unit: 1, name: yearly}}
  - {key: blocked, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: vip, rate_limit: {unlimited: true, replaces: [{name: yearly}]}}
  - {key: big, rate_limit: {unit: year, requests_per_unit: 50, replaces: [{name: yearly}]}}
  - {key: path, value: /a/b, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: path, value: /a/*, rate_limit: {unit: year, requests_per_unit: 20}}
  - {key: path, value: "/*/b*", rate_limit: {unit: year, requests_per_unit: 30}}
  - {key: path, rate_limit: {unit: year, requests_per_unit: 40}}
  - key: plan
    value: free
    descriptors:
      - {key: user, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: staff}
  - {key: tenant, value: t-*, share_threshold: true, rate_limit: {unit: year, requests_per_unit: 2}}
  - key: region
    value: eu-*
    share_threshold: true
    descriptors:
      - {key: user, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: shadowed, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: first, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: second, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: hard, rate_limit: {unit: year, requests_per_unit: 3}}
`;

const stage = useStage("file");
let service: DropIn;

beforeAll(async () => {
  service = await startDropIn(stage, { policy, env: { RESPONSE_DYNAMIC_METADATA: "true" } });
});

function ask(...entries: readonly string[]): Promise<string> {
  return service.ask(...entries);
}

/** Asks for several descriptors of one entry each. */
function askTogether(...entries: readonly string[]): Promise<string> {
  return service.askAll({ descriptors: entries.map((entry) => [entry]) });
}

/** The same question so many times, one after the other. */
async function repeat(times: number, question: () => Promise<string>): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let count = 0; count < times; count += 1) answers.push(await question());
  return answers;
}

describe("the YAML of envoyproxy/ratelimit", () => {
  it("has all names of a descriptor, and metadata of any form, which comes back", async () => {
    const answer = await service.client.ask({ descriptors: [["whole=language"]] });
    expect(reported(answer)).toBe("OK: 8/9");
    expect(answer).toMatchObject({
      response: {
        dynamicMetadata: {
          metadata: { team: "edge", owners: ["a", 1, 1.5, true, null], deep: { er: { is: "x" } } },
        },
      },
    });
    expect(await ask("whole=language", "below=any")).toBe("OK: 7/8");
    // Values that are no text in YAML are the text that stands there.
    expect([await ask("flag=true"), await ask("number=42")]).toEqual(["OK: 6/7", "OK: 5/6"]);
  });

  it("has limits in every unit and case, 0 to block, unlimited ones and names", async () => {
    const keys = ["s", "m", "h", "d", "w", "mo", "y"];
    const limits = await Promise.all(
      keys.map(async (key) => {
        const answer = await service.client.ask({ descriptors: [[`${key}=a`]] });
        const limit = answer.kind === "decided" && answer.response.statuses[0]?.currentLimit;
        return limit ? [key, limit.unit, limit.name] : [key];
      }),
    );
    // Source: envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit.
    expect(limits).toEqual([
      ["s", 1, ""],
      ["m", 2, ""],
      ["h", 3, ""],
      ["d", 4, ""],
      ["w", 7, ""],
      ["mo", 5, ""],
      ["y", 6, "yearly"],
    ]);
    expect(await ask("blocked=a")).toBe("OVER: over 0/0");
    expect(await ask("free=a")).toBe("OK: 4294967295");
  });

  it("is refused where the loader there refuses it, with file, line and column", async () => {
    const folder = join(stage.folder, "wrong");
    await mkdir(folder);
    for (const [name, { text }] of Object.entries(wrongFiles)) {
      await writeFile(join(folder, `${name}.yaml`), text.replace("$", name));
    }
    const { code, out } = await captureCli(["check", "-o", "json", folder]);
    expect(code).toBe(3);
    const problems: { id: string; file: string; line: number; column: number }[] =
      JSON.parse(out).problems;
    const found = problems.map(({ id, file, line, column }) => {
      expect([line > 0, column > 0]).toEqual([true, true]);
      return [file.replace(/.*\/|\.yaml/g, ""), id];
    });
    const wanted = Object.entries(wrongFiles).map(([name, { id }]) => [name, id]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  });

  it("matches the value, then patterns in file order, then the key, at full depth", async () => {
    expect(await ask("path=/a/b")).toBe("OK: 9/10");
    expect(await ask("path=/a/bc")).toBe("OK: 19/20");
    expect(await ask("path=/c/bc")).toBe("OK: 29/30");
    expect(await ask("path=/c")).toBe("OK: 39/40");
    // Above the limit and below it nothing counts; a leaf without one lets all pass.
    expect(await ask("plan=free")).toBe("OK: -");
    expect(await ask("plan=free", "user=a")).toBe("OK: 4/5");
    expect(await ask("plan=free", "user=a", "more=b")).toBe("OK: -");
    expect(await ask("staff=a")).toBe("OK: -");
    expect(await ask("nobody=a")).toBe("OK: -");
  });

  it("counts all values of a share_threshold pattern together, at that entry only", async () => {
    expect(await ask("tenant=t-1")).toBe("OK: 1/2");
    expect(await ask("tenant=t-2")).toBe("OK: 0/2");
    expect(await ask("tenant=t-3")).toBe("OVER: over 0/2");
    expect(await ask("region=eu-1", "user=a")).toBe("OK: 1/2");
    expect(await ask("region=eu-2", "user=a")).toBe("OK: 0/2");
    expect(await ask("region=eu-2", "user=b")).toBe("OK: 1/2");
  });

  it("gives way to a limit that the request carries, in a known domain only", async () => {
    const asked = async (domain: string, key: string): Promise<string> => {
      const limit = { requestsPerUnit: 1, unit: "YEAR" };
      const descriptors = [{ entries: [{ key, value: "carried" }], limit }];
      const answer = await service.headgate.postJson({ domain, descriptors });
      const [status] = JSON.parse(answer.body).statuses;
      return `${answer.status} ${status.code} of ${status.currentLimit?.requestsPerUnit}`;
    };
    expect(await asked("edge", "path")).toBe("200 OK of 1");
    expect(await asked("edge", "path")).toBe("429 OVER_LIMIT of 1");
    // Neither shadow_mode nor quota_mode of the rule it takes the place of softens it.
    for (const key of ["shadowed", "first"]) {
      expect(await asked("edge", key)).toBe("200 OK of 1");
      expect(await asked("edge", key)).toBe("429 OVER_LIMIT of 1");
    }
    expect(await asked("unknown", "path")).toBe("200 OK of undefined");
  });

  it("drops a limit that another rule of the request replaces", async () => {
    expect(await askTogether("y=replaced", "vip=a")).toBe("OK: -, 4294967295");
    expect(await askTogether("y=replaced", "big=a")).toBe("OK: -, 49/50");
    // Nothing was charged meanwhile.
    expect(await ask("y=replaced")).toBe("OK: 0/1");
    expect(await askTogether("y=replaced", "vip=a")).toBe("OK: -, 4294967295");
  });

  it("denies by quota_mode only when all such limits are over; QUOTA_MODE means all", async () => {
    const answers = await repeat(3, () => askTogether("first=a", "second=a"));
    expect(answers).toEqual(["OK: 0/1, 1/2", "OK: over 0/1, 0/2", "OVER: over 0/1, over 0/2"]);
    // A limit that is no quota denies by itself.
    await repeat(3, () => ask("hard=a"));
    expect(await askTogether("first=b", "hard=a")).toBe("OVER: 1/1, over 0/3");

    const all = await startDropIn(stage, { policy, env: { QUOTA_MODE: "true" } });
    await all.ask("y=a");
    const together = { descriptors: [["y=a"], ["hard=a"]] };
    expect(await all.askAll(together)).toBe("OK: over 0/1, 2/3");
  });

  it("lets pass and counts in shadow_mode; SHADOW_MODE means everybody", async () => {
    expect(await repeat(2, () => ask("shadowed=a"))).toEqual(["OK: 0/1", "OK: 0/1"]);
    const { headgate } = service;
    const labels = { rule: "shadowed", outcome: "shadow_over" };
    expect(await headgate.metric("headgate_decisions_total", labels)).toBe(1);

    const all = await startDropIn(stage, { policy, env: { SHADOW_MODE: "true" } });
    expect(await repeat(2, () => all.ask("y=a"))).toEqual(["OK: 0/1", "OK: over 0/1"]);
    expect(await all.headgate.metric("headgate_shadowed_requests_total")).toBe(1);
  });
});

interface WrongFile {
  /** `$` is the file's name: a domain of its own. */
  readonly text: string;
  readonly id: string;
}

function descriptor(text: string, id: string): WrongFile {
  return { text: `domain: $\ndescriptors: [${text}]\n`, id };
}

function limit(text: string, id: string): WrongFile {
  return descriptor(`{key: a, rate_limit: {${text}}}`, id);
}

const wrongFiles: Readonly<Record<string, WrongFile>> = {
  "unknown-name": descriptor("{key: a, limit: {}}", "HG120"),
  "name-that-is-no-text": descriptor("{key: a, 1: b}", "HG123"),
  "list-of-no-maps": descriptor("a", "HG124"),
  "empty-domain": { text: 'domain: ""\n', id: "HG130" },
  "empty-key": descriptor('{key: ""}', "HG130"),
  "no-key": descriptor("{value: a}", "HG125"),
  "key-twice": descriptor("{key: a}, {key: a}", "HG151"),
  "value-twice": descriptor("{key: a, value: b}, {key: a, value: b}", "HG151"),
  "domain-twice": { text: "domain: bad-unit\n", id: "HG150" },
  "bad-unit": limit("unit: fortnight, requests_per_unit: 1", "HG142"),
  "unit-and-unlimited": limit("unit: day, unlimited: true", "HG126"),
  "replaces-nothing": limit('unlimited: true, replaces: [{name: ""}]', "HG130"),
  "replaces-itself": limit("name: x, unlimited: true, replaces: [{name: x}]", "HG153"),
  "shares-no-pattern": descriptor("{key: a, value: b, share_threshold: true}", "HG128"),
  "bad-metadata": descriptor("{key: a, metadata: [1]}", "HG124"),
  "fraction-of-a-hit": limit("unit: day, requests_per_unit: 1.5", "HG140"),
  "fraction-as-value": descriptor("{key: a, value: 1.5}", "HG124"),
};
