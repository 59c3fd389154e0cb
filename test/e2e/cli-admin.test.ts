import { resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { edgePolicy, type Gateway, startHostedGateway } from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

/** Hourly: what remains is exact while a test runs. */
const policy = edgePolicy(`
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3}
`);

const stage = useStage("file");
let gateway: Gateway<HostedHeadgate>;
/** Admin ports: of a Headgate that no Envoy asks, and of the one that Envoy asks. */
let other: string;
let asked: string;

beforeAll(async () => {
  const { port: redisPort } = await startRedis(stage);
  const ports = [await freePort(), await freePort()];
  const [otherEnv = {}, askedEnv = {}] = ports.map((port) => ({
    ...redisEnv(redisPort),
    HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`,
    HEADGATE_ADMIN_OPEN: "true",
  }));
  [other = "", asked = ""] = ports.map((port) => `http://127.0.0.1:${port}`);
  [gateway] = await Promise.all([
    startHostedGateway(stage, {
      policy,
      headgateEnvs: [askedEnv],
      descriptorKeys: [["user"]],
    }),
    HostedHeadgate.start(stage, { policy, env: otherEnv }),
  ]);
});

/** Runs the built command line in a process of its own. */
function start(url: string, words: readonly string[]) {
  return stage.spawn({
    name: `headgate ${words.join(" ")}`,
    file: process.execPath,
    args: [resolve("dist/cli/main.js"), ...words],
    env: { HEADGATE_ADMIN_URL: url },
  });
}

async function run(url: string, ...words: readonly string[]): Promise<string> {
  const { code, out, err } = await captureCli(words, { env: { HEADGATE_ADMIN_URL: url } });
  expect(code, out + err).toBe(0);
  return out;
}

async function send(user: string, count: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) statuses.push((await gateway.send({ user })).status);
  return statuses;
}

describe("headgate keys", () => {
  it("changes on one replica what a real Envoy's callers see through another", async () => {
    expect(await send("ann", 4)).toEqual([200, 200, 200, 429]);
    const words = ["edge", "user=ann", "--times", "2x", "--reason", "launch"];
    const override = start(other, ["keys", "override", ...words]);
    expect(await within("it is set", 30_000, override.exited)).toEqual({ code: 0 });
    expect(override.output).toContain("times 2");
    await waitFor("ann gets more", async () => (await send("ann", 1))[0] === 200);
    expect(await send("ann", 3)).toEqual([200, 200, 429]);
    expect(await run(asked, "keys", "get", "edge", "user=ann")).toContain("6 of 6 used");
    expect(await run(asked, "audit")).toContain("launch");
    await run(other, "keys", "freeze", "edge", "user=bob", "--reason", "scraping");
    // Bob asks for nothing before it is active: what he used up would look like frozen, too.
    await waitFor("the replica that is asked knows", async () => {
      return (await run(asked, "keys", "overrides", "edge")).includes("user=bob");
    });
    expect(await send("bob", 1)).toEqual([429]);
    await run(asked, "keys", "unfreeze", "edge", "user=bob", "--reason", "sorry");
    await waitFor("bob is not", async () => (await send("bob", 1))[0] === 200);
  });
});

describe("headgate explain", () => {
  it("says why a 429 came", async () => {
    expect(await send("cid", 4)).toEqual([200, 200, 200, 429]);
    const text = await run(other, "explain", "edge", "user=cid");
    expect(text).toMatch(/^denied/);
    expect(text).toContain("rule user: over its limit, fits again in");
    expect(text).toContain("3 of 3 used, 0 left");
  });
});

describe("headgate tail", () => {
  it("shows a decision as it is made, and ends by Ctrl-C", async () => {
    const tail = start(asked, ["tail", "edge", "--denied", "--having", "user=dan"]);
    await waitFor(
      "the tail shows dan's refusal",
      async () => {
        await send("dan", 1);
        return tail.output.includes("denied   edge/user  user=dan");
      },
      { withinMs: 20_000, everyMs: 100 },
    );
    tail.signal("SIGINT");
    expect((await within("the tail ends", 5_000, tail.exited)).code).toBe(0);
    expect(tail.output).not.toContain("user=ann");
  });
});

/** Runs a command on a pseudo-terminal; types a key once it has drawn; answers all it wrote. */
const terminalProgram = `
import os, pty, select, sys, time, termios
key = sys.argv[1].encode().decode("unicode_escape").encode()
pid, screen = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[2], sys.argv[2:])
before = termios.tcgetattr(screen)[3]
seen, typed, end = b"", False, time.time() + 20
while time.time() < end:
    if select.select([screen], [], [], 0.1)[0]:
        try:
            part = os.read(screen, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    if not typed and b"q quit" in seen:
        os.write(screen, key)
        typed = True
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
print("\\n@@ exit %d typed %d" % (os.waitstatus_to_exitcode(status), typed))
`;

describe("headgate top", () => {
  it.each(["q", "\\x03"])("leaves a real terminal as it was after %s", async (key) => {
    const program = stage.spawn({
      name: "python3",
      file: "python3",
      args: ["-c", terminalProgram, key, process.execPath, resolve("dist/cli/main.js"), "top"],
      env: { HEADGATE_ADMIN_URL: asked },
    });
    await within("top ends", 40_000, program.exited);
    const { output } = program;
    expect(output).toContain("@@ exit 0 typed 1");
    expect(output).toContain("Keys with most requests");
    const last = output.slice(output.lastIndexOf("\u001b[H"));
    expect(last).toContain("\u001b[?25h\u001b[?1049l");
  });
});

describe("the counts of rules and limits", () => {
  const ratelimit = edgePolicy(`
  - key: user
    descriptors:
      - {key: plan, value: free, rate_limit: {unit: hour, requests_per_unit: 3}}
      - {key: plan, value: paid, rate_limit: {unlimited: true}}
  - key: empty
`);
  const whole = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: whole}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - key: user
          rate_limits:
            - {unit: hour, requests_per_unit: 3}
            - {unit: day, requests_per_unit: 9}
          descriptors: [{key: plan, descriptors: [{key: x, rate_limit: {unlimited: true}}]}]
  services:
    - {name: orders, hosts: [orders.example], admission: {maxInFlight: 2}}
  quotas:
    - {name: pace, domain: edge, bucket: [remote_address], rate: {hits: 5, period: 1s}}
`;

  it.each([
    { dialect: "a ratelimit file", text: ratelimit, rules: 2, limits: 1 },
    { dialect: "a kind: Policy", text: whole, rules: 3, limits: 3 },
  ])("are the same in check, rules, /readyz and the log, for $dialect", async (row) => {
    const { text, rules, limits } = row;
    const port = await freePort();
    const env = { HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`, HEADGATE_ADMIN_OPEN: "true" };
    const headgate = await HostedHeadgate.start(stage, { policy: text, env });
    const words = rules === 1 ? "1 rule" : `${rules} rules`;
    const size = `${words}, ${limits === 1 ? "1 limit" : `${limits} limits`}`;
    expect((await captureCli(["check", headgate.policyPath])).out).toContain(`, ${size}`);
    const checked = await captureCli(["check", "-o", "json", headgate.policyPath]);
    expect(JSON.parse(checked.out)).toMatchObject({ rules, limits });
    expect(await run(`http://127.0.0.1:${port}`, "rules")).toContain(`${size} of policy`);
    const ready = await headgate.get("/readyz");
    expect(JSON.parse(ready.body).policy).toMatchObject({ rules, limits });
    const loaded = headgate.output.split("\n").find((line) => line.includes('"policyLoaded"'));
    expect(JSON.parse(loaded ?? "{}")).toMatchObject({ ruleCount: rules, limitCount: limits });
  });
});
