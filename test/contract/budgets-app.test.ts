import { create, type JsonObject } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { MetadataSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { ProcessingRequestSchema } from "../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { startTestApp } from "../support/app.js";
import {
  type ExchangeClient,
  openExchange,
  requestHeaders,
  responseHeaders,
} from "../support/ext-proc.js";
import { startRedis } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
    - name: team
      per: [{header: x-team}]
      amount: 1000 outputTokens
      period: year
  services:
    - name: llm
      usage:
        model: {fixed: gpt-4o}
        from: body
        estimate: {initial: 100}
`;

async function startReplica(redis: RedisServer) {
  const app = await startTestApp(stage, policyText, {
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    HEADGATE_DRAIN_GRACE_MS: "100",
    // On a busy machine calls would be decided without the store.
    HEADGATE_STORE_BUDGET_MS: "1000",
  });
  const client = new Client(`127.0.0.1:${app.grpcPort}`, credentials.createInsecure());
  stage.atEnd(() => client.close());
  return { client, app };
}

type Replica = Awaited<ReturnType<typeof startReplica>>;

interface AskedCall {
  readonly exchange: ExchangeClient;
  readonly isAdmitted: boolean;
  readonly status: number | undefined;
  /** What goes with the response. */
  readonly fields: JsonObject;
}

async function ask(replica: Replica, team = "a"): Promise<AskedCall> {
  const exchange = openExchange(replica, { "x-headgate-service": "llm" });
  exchange.send(requestHeaders({ ":path": "/", ":method": "POST", "x-team": team }));
  const [answer] = await exchange.answered(1);
  const isAdmitted = answer?.response.case === "requestHeaders";
  const refusal = answer?.response.case === "immediateResponse" && answer.response.value;
  const metadata = answer?.dynamicMetadata?.["headgate"];
  return {
    exchange,
    isAdmitted,
    status: refusal ? refusal.status?.code : undefined,
    fields: typeof metadata === "object" && !Array.isArray(metadata) ? (metadata ?? {}) : {},
  };
}

/** Shows a response on a stream of its own, as Envoy's second filter does. */
function show(replica: Replica, fields: JsonObject, text: string): ExchangeClient {
  const stream = openExchange(replica, { "x-headgate-role": "usage" });
  const body = { body: new TextEncoder().encode(text), endOfStream: true };
  for (const part of [
    responseHeaders({ ":status": "200" }),
    { request: { case: "responseBody", value: body } } as const,
  ]) {
    const message = create(ProcessingRequestSchema, part);
    if (message.request.case === "responseHeaders") message.request.value.endOfStream = false;
    message.observabilityMode = true;
    message.metadataContext = create(MetadataSchema, { filterMetadata: { headgate: fields } });
    stream.send(message);
  }
  return stream;
}

const usageText = '{"usage": {"prompt_tokens": 9, "completion_tokens": 40}}';

describe("budgets in replicas over Redis", () => {
  it("let no more calls in than fit, and charge each what its response shows, once", async () => {
    const redis = await startRedis(stage);
    const [first, second] = await Promise.all([startReplica(redis), startReplica(redis)]);
    // Twice as many as fit, on both replicas at once.
    const asked = await Promise.all(
      Array.from({ length: 20 }, (_, i) => ask(i % 2 === 0 ? first : second)),
    );
    const admitted = asked.filter(({ isAdmitted }) => isAdmitted);
    expect(admitted).toHaveLength(10);
    expect(asked.filter(({ status }) => status === 429)).toHaveLength(10);
    // Another team has its own account.
    const other = await ask(second, "b");
    expect(other.isAdmitted).toBe(true);
    other.exchange.end();
    // Each response is shown to one replica or to both, whoever admitted it.
    for (const [i, { exchange, fields }] of admitted.entries()) {
      exchange.send(responseHeaders({ ":status": "200" }));
      const shows = [show(i % 3 === 0 ? first : second, fields, usageText)];
      if (i % 4 === 0) shows.push(show(first, fields, usageText));
      await Promise.all(shows.map((one) => one.over()));
      exchange.end();
    }
    await waitFor("all calls are charged", async () => {
      const spent =
        (await first.app.metric("headgate_budget_spent_total")) +
        (await second.app.metric("headgate_budget_spent_total"));
      expect(spent).toBeLessThanOrEqual(400);
      return spent === 400;
    });
    await waitFor("no call is open", async () => {
      const open = await Promise.all(
        [first, second].map(({ app }) => app.metric("headgate_budget_open_calls")),
      );
      return open.every((count) => count === 0);
    });
    // 600 are left: six calls as long as nothing is learned, or more.
    const more = await Promise.all(Array.from({ length: 6 }, () => ask(first)));
    expect(more.every(({ isAdmitted }) => isAdmitted)).toBe(true);
    for (const { exchange } of [...asked, ...more]) exchange.end();
  });

  it.each([
    { when: "before its response", hasResponse: false },
    { when: "while it streams", hasResponse: true },
  ])("charge a call whose replica stops $when", async ({ hasResponse }) => {
    const redis = await startRedis(stage);
    const [first, second] = await Promise.all([startReplica(redis), startReplica(redis)]);
    const { exchange, fields } = await ask(first);
    const cut = exchange.over().catch(() => undefined);
    if (hasResponse) {
      exchange.send(responseHeaders({ ":status": "200" }));
      await exchange.answered(2);
    }
    expect(await first.app.app.close(0)).toBe(false);
    await cut;
    await show(second, fields, usageText).over();
    await waitFor("the call is charged", async () => {
      return (await second.app.metric("headgate_budget_spent_total")) > 0;
    });
    expect(await second.app.metric("headgate_budget_spent_total")).toBe(40);
    const late = { result: "late" };
    expect(await second.app.metric("headgate_budget_settlements_total", late)).toBe(1);
  });
});
