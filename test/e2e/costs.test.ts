import { beforeAll, describe, expect, it } from "vitest";
import { fromHeader, type Json } from "../support/envoy-config.js";
import {
  edgePolicy,
  type Gateway,
  rateLimitHeaders,
  startHostedGateway,
} from "../support/gateway.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import type { HttpAnswer } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { tokensHeader } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const policy = edgePolicy(`
  - key: tokens
    rate_limit: {period: 10s, requests_per_unit: 200, burst: 100, charge: settle}
  - key: lease
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: weighed
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: carried
    rate_limit: {unit: hour, requests_per_unit: 100}
`);

function onHeader(key: string, fields: Json = {}): Json {
  return { actions: [fromHeader(`x-${key}`, key)], ...fields };
}

const rateLimits: readonly Json[] = [
  // Before the response nobody knows the cost: ask for nothing, and be refused when in debt.
  onHeader("tokens", { hits_addend: { number: 0 } }),
  onHeader("tokens", {
    apply_on_stream_done: true,
    hits_addend: { format: "%RESP(x-tokens-used)%" },
  }),
  // Taken for as long as the request lasts.
  onHeader("lease"),
  onHeader("lease", {
    apply_on_stream_done: true,
    hits_addend: { number: 1, is_negative_hits: true },
  }),
  onHeader("weighed", { hits_addend: { number: 4 } }),
  // The route knows better than the policy.
  onHeader("carried", { limit: { rate_limit: { requests_per_unit: 2, unit: "HOUR" } } }),
];

const stage = useStage("file");
let gateway: Gateway<HostedHeadgate>;

beforeAll(async () => {
  gateway = await startHostedGateway(stage, { policy, envoy: { rateLimits } });
});

/** A request whose upstream answer says that it cost so many tokens. */
function spend(caller: string, tokens: number): Promise<HttpAnswer> {
  return gateway.send({ tokens: caller, [tokensHeader.slice(2)]: String(tokens) });
}

describe("a cost known after the response", () => {
  it("is charged into debt, refuses the next request, and is paid off in time", async () => {
    const caller = "spends-too-much";
    expect((await spend(caller, 160)).status).toBe(200);
    // Envoy settles after the answer has left, in a call of its own.
    const refused = await waitFor("the debt is charged", async () => {
      const answer = await spend(caller, 0);
      return answer.status === 429 ? answer : undefined;
    });
    // 160 of 100, 20 a second: the debt of 60 is paid in 3 s, and the header says so.
    const waitSeconds = rateLimitHeaders(refused).retryAfterSeconds ?? 0;
    expect(waitSeconds).toBe(3);
    const admitted = await waitFor("the debt is paid", async () => {
      const answer = await spend(caller, 0);
      return answer.status === 200 ? answer : undefined;
    });
    expect(admitted.answeredMs).toBeGreaterThan(refused.sentMs + (waitSeconds - 1) * 1_000);
    expect(admitted.sentMs).toBeLessThan(refused.answeredMs + waitSeconds * 1_000 + slackMs);
  });

  it("does not refuse those who stay within the limit", async () => {
    for (let count = 0; count < 5; count += 1) {
      expect((await spend("spends-little", 1)).status).toBe(200);
    }
  });
});

describe("hits given back", () => {
  it("make room again as soon as the request is over", async () => {
    const lease = "one-at-a-time";
    for (let count = 0; count < 3; count += 1) {
      // An hourly limit of 1: without the refund, only the first would ever pass.
      await waitFor(
        "the lease is free",
        async () => (await gateway.send({ lease })).status === 200,
      );
    }
  });
});

describe("hits and limits that Envoy sends", () => {
  it("count for as many as the action says", async () => {
    const statuses = [];
    for (let count = 0; count < 3; count += 1) {
      const answer = await gateway.send({ weighed: "four-each" });
      statuses.push([answer.status, rateLimitHeaders(answer).remaining]);
    }
    expect(statuses).toEqual([
      [200, 6],
      [200, 2],
      [429, 0],
    ]);
  });

  it("replace the policy's limit by the one the request carries", async () => {
    const statuses = [];
    for (let count = 0; count < 3; count += 1) {
      statuses.push((await gateway.send({ carried: "anyone" })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });
});

/** Ten times what the promise leaves for the network and a busy machine. */
const slackMs = 1_000;
