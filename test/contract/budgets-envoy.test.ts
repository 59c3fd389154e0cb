import { createServer, request, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { startTestApp } from "../support/app.js";
import { Envoy } from "../support/envoy.js";
import { HttpClient } from "../support/http-client.js";
import { listenOnLoopback } from "../support/loopback-server.js";
import { useStage } from "../support/stage.js";
import { bodyProcessing, usageFilter } from "../support/usage-filters.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  budgets:
    - name: team
      models: [gpt-*]
      per: [{header: x-team}]
      amount: 1000 outputTokens
      period: year
  services:
    - name: llm
      usage: {model: body, declaredMax: body, from: body}
`;

const call = JSON.stringify({ model: "gpt-4o", max_tokens: 100, messages: [], stream: true });

const pieces = [
  'data: {"model": "gpt-4o", "choices": [{"delta": {"content": "hello"}}]}\n\n',
  'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 40}}\n\n',
  "data: [DONE]\n\n",
] as const;

function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(pieces[0]);
}

/**
 * A real Envoy, a real Headgate, and a model whose streams a test goes on with.
 *
 * @param answer what the model does with a call at first
 */
async function start(answer = begin) {
  const app = await startTestApp(stage, policyText);
  const streams: ServerResponse[] = [];
  const model = createServer((asked, response) => {
    asked.resume();
    answer(response);
    streams.push(response);
  });
  const envoy = await Envoy.start(stage, {
    upstreamPort: await listenOnLoopback(stage, model),
    headgatePorts: [app.grpcPort],
    rateLimits: [],
    extProc: {
      processing_mode: bodyProcessing,
      grpc_service: {
        envoy_grpc: { cluster_name: "headgate" },
        initial_metadata: [{ key: "x-headgate-service", value: "llm" }],
      },
    },
    filtersBefore: [usageFilter({ deferred_close_timeout: "1s" })],
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const ask = async (team: string, body = call): Promise<number> => {
    const headers = { "x-team": team };
    const { status } = await http.send({ port: envoy.port, body, headers });
    return status;
  };
  const finish = (): void => {
    for (const stream of streams.splice(0)) stream.end(pieces.slice(1).join(""));
  };
  const spent = (): Promise<number> => app.metric("headgate_budget_spent_total");
  return { envoy, app, streams, ask, finish, spent };
}

describe("a budget behind a real Envoy", () => {
  it("admits as many calls as fit by their maxima, and charges what they use", async () => {
    const { streams, ask, finish, spent } = await start();
    const first = Array.from({ length: 30 }, () => ask("a"));
    const refused: number[] = [];
    for (const one of first) void one.then((status) => refused.push(status));
    await waitFor("all are decided", () => streams.length + refused.length === 30);
    expect(streams).toHaveLength(10);
    expect(refused).toEqual(Array.from({ length: 20 }, () => 429));
    finish();
    await Promise.all(first);
    await waitFor("ten calls are charged 40 tokens each", async () => (await spent()) === 400);
    // What they did not use is there again.
    const second = Array.from({ length: 10 }, () => ask("a"));
    const statuses: number[] = [];
    for (const one of second) void one.then((status) => statuses.push(status));
    await waitFor("all are decided", () => streams.length + statuses.length === 10);
    expect(streams).toHaveLength(6);
    finish();
    await Promise.all(second);
    await waitFor("six more are charged", async () => (await spent()) === 640);
  });

  it("asks no budget for another model", async () => {
    const { streams, ask, finish, spent } = await start();
    const asked = Array.from({ length: 12 }, () => ask("a", call.replace("gpt-4o", "other")));
    await waitFor("all are let in", () => streams.length === 12);
    finish();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    expect(await spent()).toBe(0);
  });

  it("charges a stream that its caller leaves no more than it may have used", async () => {
    const { envoy, app, streams, spent } = await start();
    const headers = { "x-team": "a", "content-length": String(call.length) };
    const options = { port: envoy.port, host: "127.0.0.1", method: "POST", headers };
    const sent = request(options, (response) => {
      response.on("error", () => {});
      response.once("data", () => sent.destroy());
    });
    sent.on("error", () => {});
    sent.end(call);
    await waitFor("the model is asked", () => streams.length === 1);
    await waitFor(
      "the call is charged",
      async () => (await app.metric("headgate_budget_open_calls")) === 0 && (await spent()) > 0,
      { withinMs: 15_000 },
    );
    expect(await spent()).toBeLessThanOrEqual(100);
  });

  it("charges what is reserved if the caller leaves before the model answers", async () => {
    const { envoy, app, streams, spent } = await start(() => {});
    const headers = { "x-team": "a", "content-length": String(call.length) };
    const options = { port: envoy.port, host: "127.0.0.1", method: "POST", headers };
    const sent = request(options);
    sent.on("error", () => {});
    sent.end(call);
    await waitFor("the model is asked", () => streams.length === 1);
    sent.destroy();
    await waitFor(
      "the call is over",
      async () => (await app.metric("headgate_budget_open_calls")) === 0,
      { withinMs: 15_000 },
    );
    await waitFor("the call is charged", async () => (await spent()) === 100);
  });

  it("charges nothing if the model's connection breaks before it answers", async () => {
    const { app, ask, spent } = await start((response) => void response.socket?.destroy());
    expect(await ask("a")).toBe(503);
    await waitFor("the call is over", async () => {
      return (await app.metric("headgate_budget_open_calls")) === 0;
    });
    const none = await app.metric("headgate_budget_settlements_total");
    expect([none, await spent()]).toEqual([1, 0]);
  });
});
