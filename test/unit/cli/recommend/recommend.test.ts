import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliFolder, captureCli } from "../../../support/cli.js";
import { type GeneratedLog, generatedCsv } from "../../../support/generated-log.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        # Each user.
        - key: user
          rate_limit: {unit: minute, requests_per_unit: 600}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;

const log: GeneratedLog = {
  seed: 1,
  days: 4,
  callers: 60,
  perDay: 1_500,
  zipf: 0.5,
  wild: { bursts: 3, size: 200 },
};

let folder: CliFolder;
let policy: string;

beforeEach(async () => {
  folder = await CliFolder.create();
  policy = await folder.write("policy.yaml", policyText);
});

afterEach(async () => {
  await folder.remove();
});

function recommend(...args: readonly string[]) {
  return captureCli(["recommend", "--policy", policy, ...args]);
}

/** Lines of JSON, a request a second. */
function jsonLines(count: number, fields: Readonly<Record<string, unknown>> = {}): string {
  return Array.from({ length: count }, (_, i) => {
    const line = { time: 1_767_571_200 + 10 * i, "x-user": `user-${i % 30}`, ...fields };
    return `${JSON.stringify(line)}\n`;
  }).join("");
}

describe("headgate recommend", () => {
  it("says what cannot be written before it reads a log", async () => {
    for (const flag of ["--write", "--html"]) {
      const path = join(folder.path, "missing", "file");
      const { code, err } = await recommend(flag, path, join(folder.path, "no.log"));
      expect([code, err]).toEqual([1, expect.stringContaining(`${path} cannot be written`)]);
    }
  });

  it("proposes an edit that diff, test and replay take", async () => {
    const csv = await folder.write("access.csv", generatedCsv(log));
    const edited = join(folder.path, "new.yaml");
    const { code, out, err } = await recommend("--write", edited, csv);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/Proposed: \d per 1m, burst \d+, now 600 and 600/);
    expect(out).toMatch(/Refused: caller-[0-9a-f]{8} \([0-9,]+ refused, far above others\)/);
    expect(out).toContain("- key: user");
    expect(out).toMatch(/\+ +burst: \d+ # what that needs at once/);
    expect(out).not.toContain("wild");
    expect(out).not.toContain("user-");
    const text = await readFile(edited, "utf8");
    expect(text).toContain("        # Each user.\n");
    const diff = await captureCli(["diff", policy, edited]);
    expect(diff.code).toBe(4);
    expect(diff.out).toContain("its state is kept");
    const replayed = await captureCli(["replay", "--policy", edited, "-o", "json", csv]);
    const { rules } = JSON.parse(replayed.out) as { rules: { keys: { key: string }[] }[] };
    expect(rules[0]?.keys[0]?.key).toBe("user=wild");
  });

  it("shows callers by their keys only if it is told to, in every output", async () => {
    const csv = await folder.write("access.csv", generatedCsv(log));
    const html = join(folder.path, "report.html");
    const json = await recommend("--html", html, "-o", "json", csv);
    const texts = [json.out, await readFile(html, "utf8")];
    for (const text of texts) expect(text).not.toMatch(/wild|user-\d/);
    const { recommendation, edits, counts } = JSON.parse(json.out);
    expect(counts).toEqual({ lineCount: expect.any(Number), unreadableCount: 0 });
    expect(edits).toHaveLength(1);
    expect(recommendation.proposals[0].refusals.callers[0]).toMatchObject({ isOutlier: true });
    const shown = await recommend("--show-keys", "--html", html, "-o", "json", csv);
    for (const text of [shown.out, await readFile(html, "utf8")])
      expect(text).toContain("user=wild");
  });

  it("adds a limit to a service that has none", async () => {
    policy = await folder.write(
      "policy.yaml",
      policyText
        .replace(/ {2}rateLimits:[\s\S]*? {2}services/, "  services")
        .replace(/ +rateL.*\n/, ""),
    );
    const csv = await folder.write("access.csv", generatedCsv(log));
    const edited = join(folder.path, "new.yaml");
    const made = await recommend(
      "--per",
      "user=@x-user",
      "--period",
      "10s",
      "--write",
      edited,
      csv,
    );
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(made.out).toMatch(/Proposed: \d per 10s, burst \d+\n/);
    expect((await captureCli(["check", edited])).code).toBe(0);
    expect(await readFile(edited, "utf8")).toMatch(/period: 10s\n +requests_per_unit: \d+ # for/);
    const wrong = await recommend("--per", "x-user", csv);
    expect([wrong.code, wrong.err]).toEqual([
      2,
      expect.stringContaining("--per x-user: write remote_address, key=@header or key=value"),
    ]);
    expect((await recommend("--per", "a=b", "--period", "never", csv)).code).toBe(2);
    expect((await recommend("--per", "a=b", "--service", "no", csv)).err).toContain(
      "no service no",
    );
  });

  it("proposes nothing from too little, says what it needs, and exits with 4", async () => {
    const edited = join(folder.path, "new.yaml");
    const short = await folder.write("short.json", jsonLines(90));
    const { code, out } = await recommend("--write", edited, short);
    expect(code).toBe(4);
    expect(out).toContain(`Not enough data for shop/user:
  90 requests; 1,000 are needed, about 12 times as many
  the log covers 14m50s; 1 h is needed`);
    await expect(readFile(edited)).rejects.toThrow(/ENOENT/);
    const nobody = await folder.write("nobody.json", jsonLines(2_000, { "x-user": undefined }));
    const unmet = await recommend(nobody);
    expect([unmet.code, unmet.out]).toEqual([4, expect.stringContaining("No request met a limit")]);
  });

  it.each([
    ["an empty log", "", ": empty, or no line has less than 65,536"],
    ["zeros", "\0\0\0\0\n".repeat(2_000), "none of its 2,000 lines could be read"],
    ["an endless line", "x".repeat(3_000_000), ": empty, or no line has less than"],
    [
      "an endless line of JSON",
      `{"time":"${"9".repeat(3_000_000)}`,
      ": empty, or no line has less than",
    ],
    ["lines of another kind", jsonLines(900) + "ann 7\n".repeat(100), ":901: 10 % of the lines"],
    ["two formats", jsonLines(900) + generatedCsv({ ...log, days: 1 }), ":901: "],
    ["a truncated archive", gzipSync(jsonLines(2_000)).subarray(0, 2_000), "corrupt or truncated"],
  ])("refuses %s, and says what to do", async (_, content, expected) => {
    const path = await folder.write("access.log", content);
    const { code, out, err } = await recommend(path);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^headgate recommend: .*access\.log:/);
    expect(err).toContain(expected);
  });

  it("tells of few lines that it cannot read, and of few times that go back", async () => {
    const back = jsonLines(20);
    const path = await folder.write("access.log", `${jsonLines(6_000)}{"x-user\n${back}`);
    const { code, out } = await recommend(path);
    expect(code).toBe(0);
    expect(out).toMatch(/1 line could not be read, the first at .*access\.log:6001\./);
    expect(out).toContain("20 requests arrived too late to be sorted: sort the log by time first.");
  });

  it("refuses a log whose times go back, and takes rotated logs in any order", async () => {
    const lines = jsonLines(9_000).split(/(?<=\n)/);
    const back = await folder.write("back.log", lines.toReversed().join(""));
    const { code, err } = await recommend(back);
    expect(code).toBe(1);
    expect(err).toMatch(/[0-9,]+ of 9,000 requests are out of order; sort the log by time first/);
    const whole = await folder.write("whole.log", lines.join(""));
    const newest = await folder.write("access.log", lines.slice(6_000).join(""));
    const oldest = await folder.write("access.log.2.gz", gzipSync(lines.slice(0, 3_000).join("")));
    const middle = await folder.write("access.log.1", lines.slice(3_000, 6_000).join(""));
    const one = await recommend(whole);
    expect(one.code).toBe(0);
    expect(await recommend(newest, middle, oldest)).toEqual(one);
    const gone = await recommend(newest, join(folder.path, "gone.log"));
    expect([gone.code, gone.err]).toEqual([1, expect.stringMatching(/gone\.log: .*no such file/i)]);
  });

  it("takes keys of any kind, and days of any time", async () => {
    const names = ["__proto__", "constructor", "\u001b[31m", "<script>", "'\"`", "ann\u2028"];
    const lines = Array.from({ length: 4_000 }, (_, i) => {
      const user = i % 30 < names.length ? names[i % 30] : `user-${i % 30}`;
      return JSON.stringify({ time: 1_767_571_200 + 10 * i, "x-user": user });
    });
    const far = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"];
    lines.push(...far.map((time) => JSON.stringify({ time, "x-user": "far" })));
    const path = await folder.write("access.log", lines.join("\n"));
    const html = join(folder.path, "report.html");
    const { code, out } = await recommend(
      "--show-keys",
      "--refuse-callers",
      "1",
      "--refuse-requests",
      "1",
      "--headroom",
      "1",
      "--html",
      html,
      path,
    );
    expect(code).toBe(0);
    expect(out).not.toContain("\u001b[31m");
    expect(out).toContain("4 days from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z");
    expect(await readFile(html, "utf8")).not.toContain("<script>");
  });

  it("refuses wrong flags", async () => {
    const path = await folder.write("access.log", jsonLines(10));
    const usageOf = async (...args: readonly string[]) => {
      const { code, err } = await recommend(...args);
      return code === 2 ? err.trim() : `code ${code}`;
    };
    expect(await usageOf("-")).toContain("a log is read at least twice");
    expect(await usageOf("--headroom", "0.5", path)).toContain(
      "--headroom must be a number from 1",
    );
    expect(await usageOf("--refuse-callers", "2", path)).toContain(
      "--refuse-callers must be above 0",
    );
    expect(await usageOf("--field", "x-user", path)).toContain("write NAME=FIELD");
    const two = await folder.write("two.yaml", "domain: two\n");
    expect(await usageOf("--policy", two, "--write", two, path)).toContain("a policy of one file");
  });
});
