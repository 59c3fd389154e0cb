import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ExplainRequest } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { AdminServer } from "../../../support/admin-server.js";
import { CliFolder, captureCli } from "../../../support/cli.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
        - {key: user, value: vip, rate_limit: {unlimited: true}}
        - {key: tenant, rate_limit: {unit: minute, requests_per_unit: 100}}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit:
        domain: shop
        descriptors: [[{header: x-user, as: user}], [{header: x-tenant, as: tenant}]]
    - {name: quiet, hosts: [quiet.example]}
`;

let folder: CliFolder;
let policy: string;
let server: AdminServer | undefined;

beforeEach(async () => {
  folder = await CliFolder.create();
  policy = await folder.write("policy.yaml", policyText);
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  await folder.remove();
});

function explain(...words: readonly string[]) {
  return captureCli(["explain", ...words], { env: { HEADGATE_ADMIN_TOKEN_FILE: "/no/such/file" } });
}

describe("headgate explain --policy", () => {
  it("draws which rule matched, what it holds, and why the others did not", async () => {
    const { code, out, err } = await explain("--policy", policy, "shop", "user=ann");
    expect([code, err]).toEqual([0, ""]);
    expect(out.split("\n").slice(1)).toEqual([
      "└─ user=ann",
      "   ├─ rule user: within its limits",
      "   │  └─ 2 per 1m",
      "   │     ├─ ░░░░░░░░░░  0 of 2 used, 2 left",
      "   │     ├─ the call fits now",
      expect.stringMatching(/ {3}│ {5}└─ key \S+/),
      '   ├─ not user_vip: "user" does not have the value "vip"',
      '   └─ not tenant: entry 1 has a different key; this rule needs "tenant"',
    ]);
    expect(out).toMatch(/^allowed {2}policy [0-9a-f]+\n/);
  });

  it("says of a call that is larger than its limit that it never fits", async () => {
    const { out } = await explain("--policy", policy, "shop", "user=ann", "--hits", "3");
    expect(out).toMatch(/^denied/);
    expect(out).toContain("over its limit permanently");
  });

  it("runs a request through the actions of the service that has its host", async () => {
    const words = ["--host", "orders.example", "--header", "X-User: vip", "--policy", policy];
    const { code, out } = await explain(...words);
    expect(code).toBe(0);
    expect(out).toContain("service orders");
    expect(out).toContain("rule user_vip: unlimited");
    expect(out).toContain("not sent: descriptor with tenant: the request has no such part");
  });

  it("says the same under a candidate", async () => {
    const candidate = await folder.write("new.yaml", policyText.replace("_unit: 2", "_unit: 9"));
    const words = ["--policy", policy, "--candidate", candidate, "shop", "user=ann", "--hits", "3"];
    const { out } = await explain(...words);
    expect(out).toMatch(/^Active\ndenied[\s\S]*\nCandidate\nallowed/);
    expect(out).toContain("The candidate decides differently: it allows the request.");
    const asJson: unknown = JSON.parse((await explain(...words, "-o", "json")).out);
    expect(asJson).toMatchObject({
      current: { isDenied: true, descriptors: [{ hits: 3, matchedLabel: "user", isOver: true }] },
      candidate: { isDenied: false },
    });
  });

  it.each([
    [["--host", "order.example"], 1, 'did you mean "orders.example"?'],
    [["--host", "quiet.example"], 1, "has no rate limits"],
    [["--host", "orders.example", "shop"], 2, "use either"],
    [["--host", "orders.example", "--header", "x-user"], 2, "write 'x-user: ann'"],
    [["--host", "orders.example", "--hits", "2"], 2, "--hits needs"],
    [["--path", "/"], 2, "need --host"],
    [["--model", "gpt-4o"], 2, "need --host"],
    [["--host", "orders.example", "--max-tokens", "-1"], 2, "--max-tokens must be"],
    [["shop"], 2, "pass a request"],
    [[], 2, "pass a request"],
    [["shop", "user=ann", "--hits", "0"], 2, "--hits must be a whole number"],
  ])("answers %o with %i", async (words, exitCode, hint) => {
    const { code, err } = await explain("--policy", policy, ...words);
    expect(code).toBe(exitCode);
    expect(err).toContain(hint);
  });

  it("lets an unknown domain pass, and says so", async () => {
    const { code, out } = await explain("--policy", policy, "shpo", "user=ann");
    expect(code).toBe(0);
    expect(out).toContain("the policy does not have this domain, so it passes; did you mean shop?");
  });

  it("answers a wrong policy with 3", async () => {
    const wrong = await folder.write("wrong.yaml", "domain: shop\ndescriptors: 7\n");
    const { code, err } = await explain("--policy", wrong, "shop", "user=ann");
    expect(code).toBe(3);
    expect(err).toContain("wrong.yaml:2");
  });
});

const budgetedText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  prices: {currency: USD, models: [{model: gpt-*, input: 2.50, output: 10}]}
  budgets:
    - name: team-month
      per: [{header: x-team}, model]
      amount: 100 USD
      period: month
    - {name: small, amount: 9 tokens, period: day, warnAt: 0.5}
    - {name: none, amount: 0 calls, period: day, over: {fallback: {cluster: cheap}}}
    - {name: other, models: [claude*], amount: 1 calls, period: day}
  services:
    - {name: llm, hosts: [llm.example], usage: {model: body, declaredMax: body, from: body}}
`;

describe("headgate explain --policy of a service with budgets", () => {
  const words = ["--host", "llm.example", "--header", "x-team: search", "--model", "gpt-4o"];

  it("draws the accounts that a call is charged to, its estimates, and what follows", async () => {
    const file = await folder.write("llm.yaml", budgetedText);
    const { code, out, err } = await explain("--policy", file, ...words, "--max-tokens", "500");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^allowed {2}policy [0-9a-f]+, service llm\n/);
    expect(out.split("\n").slice(1)).toMatchInlineSnapshot(`
      [
        "├─ call of model gpt-4o, priced as gpt-*",
        "│  ├─ budget team-month of search, gpt-4o: the call fits",
        "│  │  ├─ ░░░░░░░░░░  0.00 USD spent, 0.00 USD reserved of 100.00 USD",
        "│  │  └─ the call reserves 0.0075 USD, initial estimate",
        "│  ├─ budget small: the call fits, with a warning",
        "│  │  ├─ ░░░░░░░░░░  0 tokens spent, 0 tokens reserved of 9 tokens",
        "│  │  └─ the call reserves 9 tokens, initial estimate, capped at the capacity",
        "│  └─ budget none: over, so the call falls back; its capacity is 0, so it never fits",
        "│     ├─ ░░░░░░░░░░  0 calls spent, 0 calls reserved of 0 calls",
        "│     └─ the call reserves 1 calls, capped at the capacity",
        "└─ the request passes, but changes",
        "   ├─ sets x-headgate-budget-warning: small",
        "   └─ goes to cluster cheap",
      ]
    `);
  });

  it("denies a call that finds no room, as often as it is asked", async () => {
    const file = await folder.write("llm.yaml", budgetedText.replace("100 USD", "0 USD"));
    const { code, out } = await explain("--policy", file, ...words);
    expect(code).toBe(0);
    expect(out).toMatch(/^denied/);
    expect(out).toContain(
      "budget team-month of search, gpt-4o: refused, its capacity is 0, so it never fits",
    );
  });

  it("says of a model without a price what it costs", async () => {
    const file = await folder.write("llm.yaml", budgetedText);
    const { out } = await explain("--policy", file, "--host", "llm.example", "--model", "claude-5");
    expect(out).toContain("model claude-5, which has no price, so it costs as much as the dearest");
    expect(out).toContain("budget other: the call fits");
  });
});

describe("headgate explain", () => {
  it("asks the running service, with the candidate's texts", async () => {
    const asked: ExplainRequest[] = [];
    server = await AdminServer.start({
      limits: {
        explain: (request) => {
          asked.push(request);
          return { current: { isDomainKnown: true } };
        },
      },
    });
    const words = ["--admin-url", server.url, "--candidate", policy, "--host", "orders.example"];
    const more = ["--method", "POST", "--path", "/a", "--header", "X-User: a: b"];
    const all = ["explain", ...words, ...more, "--remote-address", "10.0.0.1"];
    const { code, out } = await captureCli(all, { env: {} });
    expect(code).toBe(0);
    expect(out).toContain("this request sends no descriptors");
    expect(asked).toMatchObject([
      {
        request: {
          case: "http",
          value: {
            method: "POST",
            host: "orders.example",
            path: "/a",
            headers: { "x-user": "a: b" },
            remoteAddress: "10.0.0.1",
          },
        },
        candidate: [{ text: policyText }],
      },
    ]);
  });
});
