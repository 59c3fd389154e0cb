import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "../../../src/app/config/config.js";
import { textWidth } from "../../../src/cli/terminal/text-width.js";
import { busyScript } from "../../support/admin-script.js";
import { AdminServer } from "../../support/admin-server.js";
import { captureCli } from "../../support/cli.js";
import { FakeTerminal } from "../../support/fake-terminal.js";

let server: AdminServer;

beforeAll(async () => {
  server = await AdminServer.start(busyScript);
});

afterAll(() => server.close());

function run(line: string, env: Readonly<Record<string, string>> = { NO_COLOR: "1" }) {
  const terminal = new FakeTerminal({ columns: 80 });
  const all = { ...env, HEADGATE_ADMIN_URL: server.url };
  return captureCli(line.split(" "), { env: all, terminal });
}

/** Without a terminal, as in a pipe. */
function runPiped(line: string, env: Readonly<Record<string, string>> = {}) {
  return captureCli(line.split(" "), { env: { ...env, HEADGATE_ADMIN_URL: server.url } });
}

const screens = [
  "rules",
  "top --once",
  "top --once --by denials",
  "top --once --by near",
  "tail -n 1",
  "keys get shop plan=free,user=ann",
  "keys overrides",
  "explain shop plan=free,user=ann",
  "quotas --once",
  "quotas --list",
  "services",
  "fleet",
  "gate get checkout",
  "rooms",
  "rooms show drop",
  "budgets",
  "budgets show team-month",
  "budgets account team-month research gpt-4o",
  "budgets top-ups",
  "budgets usage team-month --by model",
  "history",
  "shadow",
  "audit",
] as const;

const helps = [
  ...["rules", "top", "tail", "keys", "explain", "quotas", "services", "fleet", "gate", "apply"],
  ...["history"],
  ...["shadow", "enforce", "rollback", "audit", "keys get", "keys reset", "keys override"],
  ...["rooms", "rooms show", "rooms pause", "rooms resume", "rooms drain", "rooms set"],
  ...["rooms open", "rooms close", "rooms reset", "rooms let-in", "rooms explain"],
  ...["budgets", "budgets show", "budgets account", "budgets top-up", "budgets delete-top-up"],
  ...["budgets refund", "budgets top-ups", "budgets usage", "budgets export"],
  "doctor",
  ...["keys freeze", "keys unfreeze", "keys overrides", "gate get", "gate set", "gate clear"],
];

describe("screens of a running Headgate", () => {
  it.each(screens)("keep %s within 80 columns, and harmless", async (line) => {
    const { code, out, err } = await run(line);
    expect([code, err.replace(/^Following.*/, "")]).toEqual([0, ""]);
    for (const one of out.split("\n")) expect(textWidth(one), one).toBeLessThanOrEqual(80);
    expect(out).not.toMatch(/[^\n\P{Cc}]|\p{Cf}/u);
    expect(out.length).toBeGreaterThan(10);
  });

  it.each(screens)("print %s for programs, too", async (line) => {
    const { code, out } = await runPiped(`${line} -o json`);
    expect(code).toBe(0);
    expect(out).not.toMatch(/[^\n\P{Cc}]|\p{Cf}/u);
    const asYaml = await runPiped(`${line} -o yaml`);
    expect(asYaml.code).toBe(0);
    expect(parse(asYaml.out)).toEqual(JSON.parse(out));
  });

  it.each(helps)("begin the help of %s with examples, within 80 columns", async (line) => {
    const { code, out } = await run(`${line} --help`);
    expect(code).toBe(0);
    expect(out).toMatch(/^Examples:\n {2}headgate /);
    for (const one of out.split("\n")) expect(one.length, one).toBeLessThanOrEqual(80);
  });

  it.each([
    ["keys gt shop user=ann", "Did you mean get?"],
    ["tp", "Did you mean top?"],
    ["top --bye hits", "Did you mean --by?"],
    ["top --by often", "Allowed choices are hits, denials, near"],
    ["top --every 1", "--every must be a duration of at least 100ms"],
    ["top -n 101", "--count must be a whole number from 1 to 100"],
    ["tail --sample 2", "--sample must be above 0"],
    ["tail --per-second 1001", "--per-second must be a whole number from 1 to 1000"],
    ["top --rule plan.user", "--rule needs a domain before it"],
    ["audit --since yesterday", "--since must be a duration such as 2h"],
    ["audit -n 100001", "--count must be"],
  ])("answer %s with 2 and a hint", async (line, hint) => {
    const { code, err } = await run(line);
    expect(code).toBe(2);
    expect(err).toContain(hint);
  });

  it.each(helps)("names in the help of %s only settings that a Headgate takes", async (line) => {
    const { out } = await run(`${line} --help`);
    for (const [, name = "", value = ""] of out.matchAll(/\b(HEADGATE_\w+)=(\w+)/g)) {
      expect(loadConfig({ flags: {}, env: { [name]: value } }).kind, `${name}=${value}`).toBe(
        "config",
      );
    }
  });

  it("colour what a terminal shows, unless somebody objects", async () => {
    const colour = "\u001b[";
    expect((await run("rules", {})).out).toContain(colour);
    expect((await run("rules", { NO_COLOR: "1" })).out).not.toContain(colour);
    expect((await run("rules", { TERM: "dumb" })).out).not.toContain(colour);
    expect((await runPiped("rules")).out).not.toContain(colour);
    expect((await runPiped("rules", { FORCE_COLOR: "1" })).out).toContain(colour);
  });

  it("tell what breakers refuse, and what is kept for HIGH", async () => {
    expect((await run("services")).out).toMatch(
      / waiting {2}refused {2}overflow\n.* 12 +0 +3\.5\/s\n/,
    );
    const title = "checkout: 120 at a time, 24 of them reserved for HIGH; breakers refuse 3.5/s";
    expect((await run("fleet")).out).toContain(title);
    const below = /\n\nRefused by circuit breakers, as Envoys report\n {2}3\.5\/s {2}checkout\n?$/;
    expect((await run("top --once")).out).toMatch(below);
    expect((await run("top --once --by near")).out).toMatch(below);
    expect((await run("top shop --once")).out).not.toContain("breakers");
  });

  it("cut nothing off a terminal", async () => {
    expect((await runPiped("top")).out).toContain("mallory".repeat(20));
    expect((await run("top --once")).out).not.toContain("mallory".repeat(20));
  });
});

describe("-o json", () => {
  it("has numbers for counts, what is empty too, and times and durations as texts", async () => {
    const { out } = await runPiped("rules -o json");
    const answer: unknown = JSON.parse(out);
    expect(answer).toMatchObject({
      rules: [
        {
          domain: "shop",
          isUnlimited: false,
          limits: [{ name: "pace", hits: 5, period: "10s", burst: 20 }, { name: "daily" }],
          counts: { hits: 123_456, overLimitHits: 78, nearLimitHits: 9 },
        },
        { isUnlimited: true, limits: [] },
      ],
      policyVersion: "a0d28aa75823",
    });
    const top: unknown = JSON.parse((await runPiped("top -o json")).out);
    expect(top).toMatchObject({ since: "2026-11-21T12:00:00Z", keys: [{ count: 4_200 }, {}] });
  });

  it("keeps a caller's value, escaped", async () => {
    const { out } = await runPiped("top -o json");
    expect(out).toContain("\\u001b[2J\\u202e");
    const answer: { keys: { key: { entries: { value: string }[] } }[] } = JSON.parse(out);
    expect(answer.keys[1]?.key.entries[0]?.value).toContain("\u001b[2J\u202emallory");
  });
});

describe("headgate gate get", () => {
  it("says that there is no such service", async () => {
    const { code, err } = await run("gate get chekout");
    expect([code, err]).toEqual([1, "headgate gate get: There is no such service."]);
  });
});

describe("headgate shadow", () => {
  it("names the rules whose buckets began empty", async () => {
    const { out } = await run("shadow");
    expect(out.replaceAll(/\s+/g, " ")).toContain(
      "Buckets of shop/user started empty, and allow too much for one period of " +
        "their limit; others started with the state of the active buckets.",
    );
  });

  it("says what to do where there is no shadow policy", async () => {
    const none = await AdminServer.start({
      policies: {
        getShadowReport: () => {
          throw new ConnectError("there is no shadow policy", Code.NotFound);
        },
      },
    });
    const { code, err } = await captureCli(["shadow"], { env: { HEADGATE_ADMIN_URL: none.url } });
    await none.close();
    expect(code).toBe(1);
    expect(err).toContain("`headgate apply --shadow`");
  });
});
