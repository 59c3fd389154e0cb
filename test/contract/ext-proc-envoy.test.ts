import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { Envoy } from "../support/envoy.js";
import { httpFilter, type Json } from "../support/envoy-config.js";
import { type Answering, DoorKeeper, plainTerms } from "../support/ext-proc.js";
import { type HttpAsk, HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { useTransports } from "../support/transports.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const transports = useTransports();

/** Fields of the ext_proc filter, and what is not one. */
type StartOptions = Json & {
  readonly upstreamPort?: number;
  readonly filtersFirst?: readonly Json[];
};

const always: Json = { default_value: { numerator: 100, denominator: "HUNDRED" } };

/** Filters that answer by themselves: each lets the first plain request pass. */
const answering = [
  {
    what: "a local rate limit",
    filter: httpFilter("local_ratelimit", "LocalRateLimit", {
      stat_prefix: "local",
      token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: "3600s" },
      filter_enabled: always,
      filter_enforced: always,
    }),
    ask: {},
    status: 429,
  },
  {
    what: "an aborted gRPC request",
    filter: httpFilter("fault", "HTTPFault", {
      abort: { header_abort: {}, percentage: { numerator: 100 } },
    }),
    ask: {
      method: "POST",
      headers: { "content-type": "application/grpc", "x-envoy-fault-abort-request": "503" },
    },
    status: 200,
  },
];

/** A real Envoy whose requests a test's keeper decides. */
async function start(
  decide: ConstructorParameters<typeof DoorKeeper>[0],
  { upstreamPort, filtersFirst = [], ...extProc }: StartOptions = {},
) {
  const keeper = new DoorKeeper(decide);
  const counts = new ExchangeCounts();
  const codec = new ExtProcCodec(keeper);
  const service = createExternalProcessorService({ admission: keeper, codec, counts });
  const running = await transports.startServices([service]);
  const upstream = await startUpstream(stage);
  const envoy = await Envoy.start(stage, {
    upstreamPort: upstreamPort ?? upstream.port,
    headgatePorts: [running.port],
    rateLimits: [],
    filtersFirst,
    extProc,
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = (ask: Omit<HttpAsk, "port"> = {}) => http.send({ port: envoy.port, ...ask });
  const ends = (): readonly string[] => keeper.asked.flatMap((asked) => asked.ends);
  return { envoy, keeper, counts, upstream, running, send, ends };
}

describe("a real Envoy", () => {
  it("lets requests through, and says when each is over", async () => {
    const { send, keeper, counts, ends } = await start((_request, call) =>
      call.admitted({ ...plainTerms, setHeaders: [{ name: "x-reply-tokens", value: "7" }] }),
    );
    const answer = await send({ path: "/cart", headers: { "x-name": "anna" } });
    expect(answer.status).toBe(200);
    // The upstream replies with what the request's header says, which is ours.
    expect(answer.headers["x-tokens-used"]).toBe("7");
    await waitFor("the exchange is over", () => ends().length === 1);
    const [asked] = keeper.asked;
    expect(asked?.request.headers.get(":path")).toBe("/cart");
    expect(asked?.request.headers.get("x-name")).toBe("anna");
    expect(asked?.responses[0]?.status).toBe(200);
    expect(ends()).toEqual(["completed"]);
    expect(counts.openCount).toBe(0);
  });

  it("answers a refusal by itself: to a GET with a body, to a HEAD without", async () => {
    const { send, upstream } = await start(({ headers }, call) =>
      call.refused({
        status: 429,
        grpcStatus: undefined,
        headers: [{ name: "retry-after", value: "3" }],
        body: headers.get(":method") === "HEAD" ? "" : "later",
        details: "headgate_priority",
      }),
    );
    expect(await send()).toMatchObject({
      status: 429,
      body: "later",
      headers: { "retry-after": "3" },
    });
    expect(await send({ method: "HEAD" })).toMatchObject({ status: 429, body: "" });
    const grpc = await send({ method: "POST", headers: { "content-type": "application/grpc" } });
    expect(grpc.headers["grpc-status"]).toBeDefined();
    expect(upstream.requestCount).toBe(0);
  });

  it("waits as long as it is told, beyond its message time-out", async () => {
    const { send, keeper, ends } = await start((_request, call) => call.waiting(8_000), {
      message_timeout: "0.3s",
    });
    const answer = send();
    const sentMs = performance.now();
    await waitFor("the message time-out has passed twice", () => performance.now() > sentMs + 700);
    keeper.asked[0]?.call.admitted(plainTerms);
    expect((await answer).status).toBe(200);
    await waitFor("the exchange is over", () => ends().length === 1);
    expect(ends()).toEqual(["completed"]);
  });

  it("tells when a caller leaves the queue", async () => {
    const { envoy, keeper, ends, counts } = await start((_request, call) => call.waiting(8_000));
    const http = new HttpClient();
    const answer = http.send({ port: envoy.port }).catch(() => "left");
    await waitFor("it waits", () => keeper.asked.length === 1);
    http.close();
    expect(await answer).toBe("left");
    await waitFor("the place is given up", () => ends().length === 1);
    expect(ends()).toEqual(["left"]);
    await waitFor("its stream is over", () => counts.openCount === 0);
  });

  it("is told everything and asks nothing where it only observes", async () => {
    const { send, keeper, ends } = await start((_request, call) => call.admitted(plainTerms), {
      observability_mode: true,
      deferred_close_timeout: "0.1s",
    });
    expect((await send()).status).toBe(200);
    await waitFor("the exchange is over", () => ends().length === 1);
    expect(keeper.asked[0]?.request.isObserved).toBe(true);
    expect(keeper.asked[0]?.responses[0]?.status).toBe(200);
    expect(ends()).toEqual(["completed"]);
  });

  it("sends no more of an exchange whose stream we end with the answer", async () => {
    const { send, ends, counts } = await start((_request, call) =>
      call.admitted({ ...plainTerms, isFollowed: false }),
    );
    expect((await send()).status).toBe(200);
    await waitFor("the exchange is over", () => ends().length === 1);
    expect(counts.parts).toEqual(new Map([["requestHeaders", 1]]));
  });

  it("sends response headers of the exchanges that we ask for", async () => {
    const { send, ends, counts } = await start(
      ({ headers }, call) =>
        call.admitted({
          ...plainTerms,
          responseHeaders: headers.get("x-name") === "sampled" ? "send" : undefined,
        }),
      { processing_mode: { response_header_mode: "SKIP", response_trailer_mode: "SEND" } },
    );
    await send({ headers: { "x-name": "sampled" } });
    await waitFor("the first is over", () => ends().length === 1);
    expect(counts.parts.get("responseHeaders")).toBe(1);
    await send();
    await waitFor("the second is over", () => ends().length === 2);
    expect(counts.parts.get("responseHeaders")).toBe(1);
  });

  it("knows a response's end also where it asked for its headers", async () => {
    const bodies: ServerResponse[] = [];
    const server = createServer((_request, response) => {
      response.write("first\n");
      bodies.push(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    stage.atEnd(() => server.close());
    const { port } = server.address() as AddressInfo;
    const decide = (_request: unknown, call: Answering): void =>
      call.admitted({ ...plainTerms, responseHeaders: "send" });
    const { send, keeper, counts } = await start(decide, {
      upstreamPort: port,
      processing_mode: { response_header_mode: "SKIP", response_trailer_mode: "SEND" },
    });
    const answer = send();
    const asked = await waitFor("it was asked", () => keeper.asked[0]);
    await waitFor("the response has begun", () => asked.responses.length === 1);
    // Another whole exchange fits between: one that ended early would have said so by now.
    const between = send();
    const second = await waitFor("another was asked", () => keeper.asked[1]);
    await waitFor("its response has begun", () => second.responses.length === 1);
    expect(asked.ends).toEqual([]);
    for (const body of bodies) body.end("last\n");
    await between;
    expect((await answer).body).toBe("first\nlast\n");
    await waitFor("the exchange is over", () => asked.ends.length === 1);
    expect(asked.ends).toEqual(["completed"]);
    expect(counts.parts.get("responseHeaders")).toBe(2);
  });

  it.each(answering)(
    "takes it quietly when $what answers first",
    async ({ filter, ask, status }) => {
      const { envoy, send, ends, counts, keeper, running } = await start(
        (_request, call) => call.admitted(plainTerms),
        { filtersFirst: [filter] },
      );
      expect((await send()).status).toBe(200);
      await waitFor("the first is over", () => ends().length === 1);
      for (let i = 0; i < 5; i += 1) expect((await send(ask)).status).toBe(status);
      await waitFor("their streams are over", () => counts.openCount === 0);
      expect(counts.answeredBeforeCount).toBe(5);
      expect(counts.faults).toEqual(new Map());
      expect(keeper.asked).toHaveLength(1);
      expect(running.bugs).toEqual([]);
      expect(await envoy.stat("http.ingress.ext_proc.streams_started")).toBe(6);
      expect(await envoy.stat("http.ingress.ext_proc.streams_failed")).toBe(0);
    },
  );

  it("serves 2,000 requests on one connection without a reset or an error", async () => {
    const { envoy, send, ends, running } = await start((_request, call) =>
      call.admitted(plainTerms),
    );
    const statuses = new Set<number>();
    for (let round = 0; round < 40; round += 1) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => send()));
      for (const { status } of answers) statuses.add(status);
    }
    expect([...statuses]).toEqual([200]);
    await waitFor("all exchanges are over", () => ends().length === 2_000);
    expect(await envoy.stat("cluster.headgate.upstream_rq_tx_reset")).toBe(0);
    expect(await envoy.stat("cluster.headgate.upstream_cx_total")).toBe(1);
    expect(running.bugs).toEqual([]);
  });
});
