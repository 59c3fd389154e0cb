import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { createUsageCodec } from "../../src/rpc/ext-proc/observed-response.js";
import { Envoy } from "../support/envoy.js";
import { type EnvoyOptions, httpFilter, type Json } from "../support/envoy-config.js";
import { type Answering, DoorKeeper, plainTerms } from "../support/ext-proc.js";
import { type HttpAsk, HttpClient } from "../support/http-client.js";
import { listenOnLoopback } from "../support/loopback-server.js";
import { useStage } from "../support/stage.js";
import { useTransports } from "../support/transports.js";
import { bodyProcessing, usageFilter } from "../support/usage-filters.js";
import { RecordingObservers } from "../support/usage-observers.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const transports = useTransports();

const listenerBytes = 65_536;

const withTrailers: Json = { http_protocol_options: { enable_trailers: true } };

/** Says of its requests what other filters may. */
const tellingFilter = httpFilter("lua", "Lua", {
  default_source_code: {
    inline_string: `function envoy_on_response(handle)
  local usage = {tokens = 42, details = {cached = 7, other = "x"}, list = {1, 2}}
  for key, value in pairs(usage) do
    handle:streamInfo():dynamicMetadata():set("io.usage", key, value)
  end
end`,
  },
});

const measured = {
  ...plainTerms,
  metadata: new Map<string, string | number>([
    ["reservation", "r-1"],
    ["service", "llm"],
    ["amount", 12.5],
  ]),
};

const admit = (_request: unknown, call: Answering): void => call.admitted(measured);

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Answers with what it was sent. */
const echo: Serve = (asked, response) => {
  const pieces: Buffer[] = [];
  asked.on("data", (piece: Buffer) => pieces.push(piece));
  asked.on("error", () => {});
  asked.on("end", () => {
    for (const [name, value] of Object.entries(asked.headers)) {
      if (name.startsWith("x-set") && value !== undefined) response.setHeader(name, value);
    }
    response.end(Buffer.concat(pieces));
  });
};

interface StartOptions {
  readonly decide?: ConstructorParameters<typeof DoorKeeper>[0];
  readonly serve?: Serve;
  readonly extProc?: Json;
  readonly envoy?: Partial<EnvoyOptions>;
  readonly isObserving?: boolean;
}

/** A real Envoy that buffers bodies, whose requests a test's keeper decides with them. */
async function start(options: StartOptions = {}) {
  const { decide = admit, serve = echo, extProc, isObserving = true } = options;
  const keeper = new DoorKeeper(decide);
  keeper.readsBodies = true;
  const [counts, usageCounts] = [new ExchangeCounts(), new ExchangeCounts()];
  const observers = new RecordingObservers();
  const usage = { observers, codec: createUsageCodec(observers), counts: usageCounts };
  const service = createExternalProcessorService({
    admission: keeper,
    codec: new ExtProcCodec(keeper),
    counts,
    requestBytesMax: 65_536,
    ...(isObserving ? { usage } : {}),
  });
  const running = await transports.startServices([service]);
  let servedCount = 0;
  const upstream = createServer((asked, response) => {
    servedCount += 1;
    serve(asked, response);
  });
  const envoy = await Envoy.start(stage, {
    upstreamPort: await listenOnLoopback(stage, upstream),
    headgatePorts: [running.port],
    rateLimits: [],
    extProc: { processing_mode: bodyProcessing, ...extProc },
    connectionManager: withTrailers,
    upstreamCluster: { typed_extension_protocol_options: trailersOfUpstream },
    listener: { per_connection_buffer_limit_bytes: listenerBytes },
    filtersBefore: [usageFilter()],
    ...options.envoy,
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = (ask: Omit<HttpAsk, "port"> = {}) => http.send({ port: envoy.port, ...ask });
  const ends = (): readonly string[] => keeper.asked.flatMap((asked) => asked.ends);
  const allOver = async (): Promise<void> => {
    await waitFor("all streams are over", () => counts.openCount + usageCounts.openCount === 0);
    expect(running.bugs).toEqual([]);
  };
  const served = (): number => servedCount;
  return { envoy, keeper, counts, usageCounts, observers, send, ends, served, allOver };
}

const trailersOfUpstream: Json = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    explicit_http_config: { http_protocol_options: { enable_trailers: true } },
  },
};

/** Sends bytes as they are, and answers what has come once there is a response. */
async function sendRaw(port: number, text: string): Promise<string> {
  let answered = "";
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.on("data", (bytes: Buffer) => {
    answered += bytes.toString();
  });
  socket.write(text);
  await waitFor("a response", () => answered.includes("\r\n\r\n"));
  socket.destroy();
  return answered;
}

describe("a real Envoy that buffers bodies", () => {
  it("asks with the body, and sets on the request what the answer to it says", async () => {
    const { send, keeper, ends, counts, allOver } = await start({
      decide: ({ facts }, call) =>
        call.admitted({
          ...measured,
          setHeaders: [{ name: "x-set-model", value: facts?.model ?? "none" }],
          removeHeaders: ["x-set-by-caller"],
        }),
    });
    const headers = { "x-set-by-caller": "1", "x-name": "anna" };
    const answer = await send({ body: "gpt-4o", headers });
    expect(answer).toMatchObject({ status: 200, body: "gpt-4o" });
    expect(answer.headers["x-set-model"]).toBe("gpt-4o");
    expect(answer.headers["x-set-by-caller"]).toBeUndefined();
    await waitFor("the exchange is over", () => ends().length === 1);
    const [asked] = keeper.asked;
    expect(asked?.request.headers.get("x-name")).toBe("anna");
    expect(asked?.request.facts).toEqual({ model: "gpt-4o", requestBytes: 6 });
    expect(keeper.bodies).toEqual([{ text: "gpt-4o", isWhole: true }]);
    expect(ends()).toEqual(["completed"]);
    expect(counts.faults).toEqual(new Map());
    await allOver();
  });

  it("holds the request until its body is answered, beyond the message time-out", async () => {
    const { send, keeper, served, allOver } = await start({
      decide: (_request, call) => call.waiting(8_000),
      extProc: { message_timeout: "0.3s" },
    });
    const sentMs = performance.now();
    const answer = send({ body: "later" });
    const asked = await waitFor("it was asked", () => keeper.asked[0]);
    await waitFor("the message time-out has passed", () => performance.now() > sentMs + 700);
    expect(served()).toBe(0);
    asked.call.admitted(measured);
    expect(await answer).toMatchObject({ status: 200, body: "later" });
    await allOver();
  });

  it("refuses with the answer to the body", async () => {
    const { send, served, allOver } = await start({
      decide: (_request, call) =>
        call.refused({
          status: 429,
          grpcStatus: undefined,
          headers: [{ name: "retry-after", value: "3" }],
          body: "no budget",
          details: "headgate_budget",
        }),
    });
    const answer = await send({ body: "gpt-4o" });
    expect(answer).toMatchObject({ status: 429, body: "no budget" });
    expect(answer.headers["retry-after"]).toBe("3");
    expect(served()).toBe(0);
    await allOver();
  });

  it.each([
    { how: "in one piece", body: "a" },
    { how: "in many pieces", body: "a".repeat(40_000) },
  ])("chooses the route again with a body $how", async ({ body }) => {
    const elsewhere = {
      match: {
        prefix: "/",
        headers: [{ name: "x-headgate-fallback", string_match: { exact: "cheap" } }],
      },
      direct_response: { status: 200, body: { inline_string: "elsewhere" } },
    };
    const { send, served, allOver } = await start({
      decide: (_request, call) =>
        call.admitted({
          ...measured,
          setHeaders: [{ name: "x-headgate-fallback", value: "cheap" }],
          clearsRoute: true,
        }),
      envoy: { routesBefore: [elsewhere] },
    });
    expect(await send({ body })).toMatchObject({ status: 200, body: "elsewhere" });
    expect(served()).toBe(0);
    await allOver();
  });

  it.each([
    { what: "without a body", ask: {} },
    { what: "with an empty one", ask: { method: "POST", headers: { "content-length": "0" } } },
  ])("asks with the headers of a request $what", async ({ ask }) => {
    const { send, keeper, counts, allOver } = await start();
    expect((await send(ask)).status).toBe(200);
    expect(keeper.asked[0]?.request.facts).toBeUndefined();
    expect(counts.parts.get("requestBody")).toBeUndefined();
    await allOver();
  });

  it("asks with the headers where the service reads no bodies, and passes the body", async () => {
    const { send, keeper, counts, allOver } = await start();
    keeper.readsBodies = false;
    expect(await send({ body: "gpt-4o" })).toMatchObject({ status: 200, body: "gpt-4o" });
    expect(keeper.bodies).toEqual([]);
    expect(keeper.asked).toHaveLength(1);
    expect(counts.parts.get("requestBody")).toBe(1);
    await allOver();
  });

  it("asks with the headers where Envoy sends no bodies", async () => {
    const { send, keeper, allOver } = await start({
      extProc: { processing_mode: { response_trailer_mode: "SEND" } },
    });
    expect(await send({ body: "gpt-4o" })).toMatchObject({ status: 200, body: "gpt-4o" });
    expect(keeper.asked[0]?.request.facts).toBeUndefined();
    await allOver();
  });

  it("answers bodies above its own limit with 413, and asks nothing", async () => {
    const { send, keeper, counts, served, allOver } = await start();
    expect((await send({ body: "a".repeat(400_000) })).status).toBe(413);
    expect(keeper.asked).toEqual([]);
    expect(counts.answeredBeforeCount).toBe(1);
    expect(counts.faults).toEqual(new Map());
    expect(served()).toBe(0);
    await allOver();
  });

  it("shows the beginning of a large body where it buffers a part", async () => {
    const partial = { ...bodyProcessing, request_body_mode: "BUFFERED_PARTIAL" };
    const { send, keeper, allOver } = await start({ extProc: { processing_mode: partial } });
    const body = "a".repeat(400_000);
    expect(await send({ body })).toMatchObject({ status: 200, body });
    expect(keeper.bodies).toHaveLength(1);
    expect(keeper.bodies[0]?.isWhole).toBe(false);
    expect(keeper.bodies[0]?.text.length).toBeLessThan(body.length);
    await allOver();
  });

  it("asks with a body of 4 MB, above what other messages may have", async () => {
    const { send, keeper, allOver } = await start({
      envoy: { listener: { per_connection_buffer_limit_bytes: 4_194_304 } },
      // A busy machine may take longer than a second for so much.
      extProc: { message_timeout: "10s" },
    });
    const body = "a".repeat(4_000_000);
    expect((await send({ body })).status).toBe(200);
    expect(keeper.bodies).toEqual([{ text: body, isWhole: true }]);
    await allOver();
  });

  it("sends trailers after the body, which change nothing", async () => {
    const { envoy, keeper, counts, allOver } = await start();
    const head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    const answer = await sendRaw(envoy.port, `${head}3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n`);
    expect(answer).toContain("HTTP/1.1 200");
    expect(keeper.bodies).toEqual([{ text: "abc", isWhole: true }]);
    expect(counts.parts.get("requestTrailers")).toBe(1);
    expect(counts.faults).toEqual(new Map());
    await allOver();
  });

  it("sends trailers without a body, which are refused: nothing would be asked", async () => {
    const { envoy, keeper, served, allOver } = await start();
    const head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    const answer = await sendRaw(envoy.port, `${head}0\r\nx-t: 1\r\n\r\n`);
    expect(answer).toContain("HTTP/1.1 400");
    expect(keeper.asked).toEqual([]);
    expect(served()).toBe(0);
    await allOver();
  });

  it("asks nothing for a caller that leaves before its body has come", async () => {
    const { envoy, keeper, counts, allOver } = await start();
    const sent = request({ port: envoy.port, host: "127.0.0.1", method: "POST" });
    sent.on("error", () => {});
    sent.write("a piece");
    await waitFor("the headers have come", () => counts.parts.get("requestHeaders") === 1);
    sent.destroy();
    await allOver();
    expect(keeper.asked).toEqual([]);
    expect(counts.parts.get("requestBody")).toBeUndefined();
  });

  it("tells trailers and metadata of other filters with the response", async () => {
    const { send, keeper, ends, allOver } = await start({
      extProc: {
        metadata_options: {
          receiving_namespaces: { untyped: ["headgate"] },
          forwarding_namespaces: { untyped: ["io.usage"] },
        },
      },
      envoy: { filtersBefore: [tellingFilter] },
      serve: (_asked, response) => {
        response.writeHead(200, { trailer: "grpc-status" });
        response.write("body");
        response.addTrailers({ "grpc-status": "8" });
        response.end();
      },
    });
    expect((await send({ body: "a" })).status).toBe(200);
    await waitFor("the exchange is over", () => ends().length === 1);
    const facts = keeper.asked[0]?.responses ?? [];
    const metadata = new Map([
      [
        "io.usage",
        new Map([
          ["tokens", 42],
          ["details.cached", 7],
        ]),
      ],
    ]);
    expect(facts.map((one) => one.metadata)).toEqual([metadata, metadata]);
    expect(facts[0]?.headers).toEqual(new Map([[":status", "200"]]));
    expect(facts[1]?.headers).toEqual(new Map([["grpc-status", "8"]]));
    expect(facts[1]?.grpcStatus).toBe(8);
    await allOver();
  });
});

describe("a real Envoy that shows responses", () => {
  it("shows a stream piece by piece, with what the other filter has said of its call", async () => {
    const pieces = ["data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"];
    const responses: ServerResponse[] = [];
    const { send, observers, usageCounts, allOver } = await start({
      serve: (_asked, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(pieces[0]);
        responses.push(response);
      },
    });
    const answer = send({ body: "a" });
    const shown = await waitFor("a response is shown", () => observers.shown[0]);
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) responses[0]?.write(piece);
      const soFar = pieces.slice(0, i + 1).join("");
      await waitFor(`piece ${i} is shown before the next one comes`, () => shown.text === soFar);
    }
    expect(shown.ends).toEqual([]);
    responses[0]?.end();
    expect((await answer).body).toBe(pieces.join(""));
    await waitFor("it is complete", () => shown.ends.length === 1);
    expect(shown).toMatchObject({
      fields: measured.metadata,
      headers: [
        new Map([
          [":status", "200"],
          ["content-type", "text/event-stream"],
        ]),
      ],
      trailers: [],
      ends: [true],
    });
    await allOver();
    expect(usageCounts.faults).toEqual(new Map());
  });

  it("shows trailers", async () => {
    const { send, observers, allOver } = await start({
      serve: (_asked, response) => {
        response.writeHead(200, { trailer: "x-usage" });
        response.write("body");
        response.addTrailers({ "x-usage": "42" });
        response.end();
      },
    });
    expect((await send({ body: "a" })).body).toBe("body");
    await allOver();
    expect(observers.shown).toMatchObject([
      { text: "body", trailers: [new Map([["x-usage", "42"]])], ends: [true] },
    ]);
  });

  it.each([
    { who: "its caller", leaves: (sent: { destroy(): void }) => sent.destroy() },
    {
      who: "the upstream",
      leaves: (_sent: { destroy(): void }, response: ServerResponse) => response.destroy(),
    },
  ])("tells the end of a response that $who leaves, by the end of its stream", async (row) => {
    const responses: ServerResponse[] = [];
    const { envoy, observers, ends, allOver } = await start({
      envoy: { filtersBefore: [usageFilter({ deferred_close_timeout: "0.3s" })] },
      serve: (_asked, response) => {
        response.writeHead(200);
        response.write("begun");
        responses.push(response);
      },
    });
    const sent = request({ port: envoy.port, host: "127.0.0.1", method: "POST" }, (response) => {
      response.on("error", () => {});
      response.resume();
    });
    sent.on("error", () => {});
    sent.end("a");
    const shown = await waitFor("the body has begun", () =>
      observers.shown.find(({ text }) => text === "begun"),
    );
    const [response] = responses;
    if (response === undefined) throw new Error("nobody was served");
    row.leaves(sent, response);
    await waitFor("it has ended", () => shown.ends.length === 1);
    expect(shown.ends).toEqual([false]);
    await allOver();
    expect(ends()).toEqual(["completed"]);
  });

  it("shows a response of Envoy's own making", async () => {
    const { send, observers, allOver } = await start({
      serve: (_asked, response) => response.destroy(),
    });
    expect((await send({ body: "a" })).status).toBe(503);
    await allOver();
    expect(observers.shown[0]?.headers[0]?.get(":status")).toBe("503");
    expect(observers.shown[0]?.ends).toEqual([true]);
  });

  it("shows nothing of a refused request: its stream ends at once", async () => {
    const { send, observers, allOver } = await start({
      decide: (_request, call) =>
        call.refused({ status: 429, grpcStatus: undefined, headers: [], body: "", details: "x" }),
    });
    expect((await send({ body: "a" })).status).toBe(429);
    await waitFor("it was asked", () => observers.openedCount === 1);
    await allOver();
    expect(observers.shown).toEqual([]);
  });

  it("loses no byte of a response of 40 MB", async () => {
    const piece = Buffer.alloc(100_000, "b");
    const { send, observers, allOver } = await start({
      serve: (_asked, response) => {
        response.writeHead(200);
        let left = 400;
        const more = (): void => {
          while (left > 0) {
            left -= 1;
            if (!response.write(piece)) return;
          }
          response.end();
        };
        response.on("drain", more);
        more();
      },
    });
    expect((await send({ body: "a" })).body).toHaveLength(40_000_000);
    await allOver();
    expect(observers.shown).toMatchObject([{ bodyBytes: 40_000_000, ends: [true] }]);
  });

  it("shows 1,000 responses on one connection without a failed stream", async () => {
    const { envoy, send, observers, usageCounts, ends, allOver } = await start();
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => send({ body: "a" })));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    }
    await waitFor("all exchanges are over", () => ends().length === 1_000);
    await allOver();
    expect(new Set(observers.shown.flatMap((shown) => shown.ends))).toEqual(new Set([true]));
    expect(observers.shown).toHaveLength(1_000);
    expect(usageCounts.faults).toEqual(new Map());
    expect(await envoy.stat("http.ingress.ext_proc.streams_failed")).toBe(0);
    expect(await envoy.stat("cluster.headgate.upstream_cx_total")).toBe(1);
  });

  it("lets responses pass where nobody looks at them", async () => {
    const { envoy, send, allOver } = await start({ isObserving: false });
    const body = "b".repeat(50_000);
    for (let i = 0; i < 3; i += 1)
      expect(await send({ body })).toMatchObject({ status: 200, body });
    await allOver();
    // Without an end of ours, those streams would last until `deferred_close_timeout`.
    expect(await envoy.stat("http.ingress.ext_proc.server_half_closed")).toBe(3);
    expect(await envoy.stat("http.ingress.ext_proc.streams_failed")).toBe(0);
  });

  it("refuses to be waited for, and harms no response", async () => {
    const waiting = usageFilter({ observability_mode: false });
    const { send, usageCounts, allOver } = await start({ envoy: { filtersBefore: [waiting] } });
    expect(await send({ body: "a" })).toMatchObject({ status: 200, body: "a" });
    await allOver();
    expect(usageCounts.faults).toEqual(new Map([["notObserved", 1]]));
  });
});
