import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliFolder, captureCli } from "../../../support/cli.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;

let folder: CliFolder;
let policy: string;

beforeEach(async () => {
  folder = await CliFolder.create();
  policy = await folder.write("policy.yaml", policyText);
});

afterEach(async () => {
  await folder.remove();
});

function replay(...args: readonly string[]) {
  return captureCli(["replay", ...args]);
}

/** One request a second, of three users in turn, the last one twice. */
function lines(count: number, fields: Readonly<Record<string, unknown>> = {}): string {
  const users = ["ann", "bob", "cid", "cid"];
  return Array.from({ length: count }, (_, i) => {
    const time = `2026-01-05T08:00:${String(i).padStart(2, "0")}Z`;
    const user = users[i % users.length];
    const usual = { start_time: time, authority: "orders.example", "x-user": user };
    return `${JSON.stringify({ ...usual, ...fields })}\n`;
  }).join("");
}

describe("headgate replay", () => {
  it("says what would have been limited, by rule and by key", async () => {
    // Each of 2 a minute: of cid's ten four find room (two at once, and one each half minute).
    const log = await folder.write("access.log", `${lines(20)}no line\n\n`);
    const { code, out } = await replay("--policy", policy, "-o", "json", log);
    expect(code).toBe(0);
    const report: unknown = JSON.parse(out);
    expect(report).toMatchObject({
      lineCount: 21,
      unreadableCount: 1,
      firstUnreadable: `${log}:21`,
      callCount: 20,
      deniedCount: 14,
      rules: [
        {
          domain: "shop",
          label: "user",
          callCount: 20,
          overCount: 14,
          keys: [{ key: "user=cid", count: 8, errorMax: 0 }, { count: 3 }, { count: 3 }],
        },
      ],
    });
  });

  it("charges costs after peeks as the service does, and says which no log has", async () => {
    await folder.write(
      "limits.yaml",
      "domain: tokens\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 2}}]\n",
    );
    await folder.write(
      "policy.yaml",
      policyText
        .replace(
          "[[{header: x-user, as: user}]]",
          `
          - {entries: [{header: x-user, as: user}], hits: 0}
          - {entries: [{header: x-cost, as: user}], hits: 3}
          - {entries: [{header: x-user, as: user}], hits: 5, when: streamDone}`,
        )
        .replace(
          "rateLimit: {domain: shop, descriptors: ",
          "rateLimit:\n        domain: tokens\n        descriptors:",
        )
        .replace("when: streamDone}}", "when: streamDone}"),
    );
    const log = await folder.write(
      "access.log",
      [{ "x-user": "ann" }, { "x-cost": "ann" }, { "x-user": "ann" }]
        .map((headers, i) => {
          const start_time = `2026-01-05T08:00:0${i}Z`;
          return `${JSON.stringify({ start_time, authority: "orders.example", ...headers })}\n`;
        })
        .join(""),
    );
    const { out, err } = await replay("--policy", folder.path, log);
    expect(err).toBe("");
    expect(out).toContain("3 requests with limits: 2 would be limited");
    expect(out).toContain(
      '3 descriptors skipped: of "user" it is charged after the response, and a ' +
        "log does not contain its cost.",
    );
  });

  it("draws it for people, with what callers wrote made harmless", async () => {
    const log = await folder.write("access.log", lines(8, { "x-user": "\u001b[2Jann" }));
    const { out } = await replay("--policy", policy, log);
    expect(out).toContain("8 lines, 8 requests with limits: 6 would be limited (75.0 %).");
    expect(out).toContain("From 2026-01-05T08:00:00Z, 8 s");
    expect(out).toMatch(/limited {2}[ ▁▂▃▄▅▆▇█]+\n/);
    expect(out).not.toContain("\u001b");
  });

  it("reads compressed logs, CSV, and the text of Envoy", async () => {
    const packed = await folder.write("access.json.gz", gzipSync(lines(4)));
    const csv = await folder.write(
      "access.csv",
      "time,host,x-user\n1767600000,orders.example,ann\r\n",
    );
    const text = await folder.write(
      "envoy.log",
      '[2026-01-05T08:00:00Z] "GET / HTTP/1.1" 200 - 0 1 1 1 "-" "a" "b" "orders.example" "-"\n',
    );
    for (const [path, callCount] of [
      [packed, 4],
      [csv, 1],
      [text, 1],
    ] as const) {
      const { out } = await replay("--policy", policy, "-o", "json", path);
      expect(JSON.parse(out)).toMatchObject({ callCount, unreadableCount: 0 });
    }
  });

  it("compares with what was limited then", async () => {
    const log = await folder.write(
      "access.log",
      lines(8, { "x-user": "ann", response_flags: "RL" }),
    );
    const { out } = await replay("--policy", policy, log);
    expect(out).toContain("8 were limited then, 6 of them would be limited again.");
  });

  it("asks the same of all where it is told, and says which hosts are nobody's", async () => {
    const log = await folder.write("access.log", lines(4, { authority: "other.example" }));
    const { out } = await replay("--policy", policy, log);
    expect(out).toContain("4 requests belong to no service with limits: other.example (4).");
    const all = ["--domain", "shop", "--descriptor", "user=@x-user"];
    const asked = await replay("--policy", policy, ...all, "-o", "json", log);
    expect(JSON.parse(asked.out)).toMatchObject({ callCount: 4, deniedCount: 0 });
  });

  it.each([
    [["--domain", "shop"], "--domain and --descriptor belong together"],
    [["--domain", "shop", "--descriptor", "user"], "write remote_address, key=@header"],
    [["--field", "x-user"], "write NAME=FIELD"],
  ])("refuses %j", async (args, words) => {
    const { code, err } = await replay("--policy", policy, ...args, "-");
    expect(code).toBe(2);
    expect(err).toContain(words);
  });

  it("says which file cannot be read, and which policy is wrong", async () => {
    const log = await folder.write("access.log", lines(1));
    const missing = await replay("--policy", policy, join(folder.path, "none.log"));
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("none.log") });
    const wrong = await folder.write("wrong.yaml", "domain: shop\ndescriptors: 1\n");
    expect(await replay("--policy", wrong, log)).toMatchObject({
      code: 3,
      err: expect.stringContaining("wrong.yaml:2:14"),
    });
  });

  it("looks for the first line that it can read, behind what a container says before", async () => {
    const said = "[2026-01-05 08:00:00.000][1][info] starting\nready\n";
    const log = await folder.write("pod.log", `${said}${lines(4)}`);
    const { out } = await replay("--policy", policy, "-o", "json", log);
    expect(JSON.parse(out)).toMatchObject({ callCount: 4, lineCount: 6, unreadableCount: 2 });
  });

  it("unpacks what is compressed, whatever its name, and reads what is not", async () => {
    const packed = await folder.write("access.log.1", gzipSync(lines(4)));
    const plain = await folder.write("access.log.gz", lines(4));
    for (const path of [packed, plain]) {
      const { out } = await replay("--policy", policy, "-o", "json", path);
      expect(JSON.parse(out)).toMatchObject({ callCount: 4, unreadableCount: 0 });
    }
    const cut = await folder.write("cut.gz", gzipSync(lines(40)).subarray(0, -20));
    expect(await replay("--policy", policy, cut)).toMatchObject({
      code: 1,
      err: expect.stringContaining("cut.gz: it is compressed, and corrupt or truncated"),
    });
  });

  it.each([
    ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326\n', [], "its only line"],
    [
      "method,path\nGET,/\nGET,/\n",
      [],
      "none of its 3 lines could be read: it is neither Envoy's default text",
    ],
    ["method,path\nGET,/\n", ["--format", "csv"], "with a time: start_time"],
    [lines(2), ["--format", "envoy"], "none of its 2 lines could be read: --format envoy is"],
    ['{"at":1}\n', [], "the field of --field time=NAME"],
  ])("fails where no line of %j can be read with %j", async (text, args, words) => {
    const log = await folder.write("other.log", text);
    const run = await replay("--policy", policy, ...args, log);
    expect(run).toMatchObject({ code: 1, out: "", err: expect.stringContaining(words) });
  });

  it("says that there is nothing in an empty log", async () => {
    const log = await folder.write("empty.log", "");
    expect(await replay("--policy", policy, log)).toMatchObject({
      code: 0,
      out: expect.stringContaining("The log is empty."),
    });
  });

  it("says what to do with a log that is in no order", async () => {
    const log = await folder.write("access.log", lines(50).repeat(100));
    const { out } = await replay("--policy", policy, log);
    expect(out).toContain("sort the log by time first");
  });

  it.each([
    [["--domain", "shpo", "--descriptor", "user=@x-user"], "did you mean shop?"],
    [["--field", "x-usr=id"], "--field x-usr: unknown name; did you mean x-user?"],
    [["--field", "unheard-of=id"], "; known names: time, method, path"],
  ])("refuses %j, which the policy does not have", async (args, words) => {
    const { code, err } = await replay("--policy", policy, ...args, "-");
    expect(code).toBe(2);
    expect(err).toContain(words);
  });

  it("passes over a line that is too long, and goes on behind it", async () => {
    const long = `${" ".repeat(70_000)}${lines(1)}`;
    const log = await folder.write("access.log", `${lines(1)}${long}${lines(1)}`);
    const { out } = await replay("--policy", policy, "-o", "json", log);
    expect(JSON.parse(out)).toMatchObject({ callCount: 2 });
  });
});
