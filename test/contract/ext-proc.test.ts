import type { ClientHttp2Session } from "node:http2";
import { describe, expect, it } from "vitest";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { messageBytesMax } from "../../src/wire/grpc/service.js";
import {
  type Answering,
  bufferedRequest,
  DoorKeeper,
  openExchange,
  openRawExchange,
  plainTerms,
  requestHeaders,
  responseHeaders,
} from "../support/ext-proc.js";
import { useTransports } from "../support/transports.js";
import { waitFor } from "../support/wait.js";

const transports = useTransports();

async function start(decide: ConstructorParameters<typeof DoorKeeper>[0]) {
  const keeper = new DoorKeeper(decide);
  const counts = new ExchangeCounts();
  const codec = new ExtProcCodec(keeper);
  const service = createExternalProcessorService({ admission: keeper, codec, counts });
  const running = await transports.startServices([service]);
  return { running, keeper, counts };
}

const bodyFirst = { request: { case: "responseBody" as const, value: { body: Buffer.from("a") } } };

const admit = (_request: unknown, call: Answering): void => call.admitted(plainTerms);

describe("ext_proc", () => {
  it("lets a request in, and gives its place back when the response is over", async () => {
    const { running, keeper, counts } = await start((_request, call) =>
      call.admitted({
        ...plainTerms,
        setHeaders: [{ name: "x-class", value: "high" }],
        removeHeaders: ["x-secret"],
        metadata: new Map([["class", "high"]]),
      }),
    );
    const exchange = openExchange(running, { "x-headgate-service": "orders" });
    exchange.send(requestHeaders({ ":path": "/cart", ":method": "GET", "x-unwanted": "1" }));
    const [first] = await exchange.answered(1);
    expect(first).toMatchObject({
      response: {
        case: "requestHeaders",
        value: {
          response: {
            headerMutation: {
              setHeaders: [{ header: { key: "x-class", rawValue: Buffer.from("high") } }],
              removeHeaders: ["x-secret"],
            },
          },
        },
      },
      dynamicMetadata: { headgate: { class: "high" } },
    });
    exchange.send(responseHeaders({ ":status": "503", "endpoint-load-metrics": "JSON {}" }));
    await exchange.answered(2);
    const [asked] = keeper.asked;
    expect(asked?.request.serviceName).toBe("orders");
    expect([...(asked?.request.headers ?? [])]).toEqual([
      [":path", "/cart"],
      [":method", "GET"],
    ]);
    expect(asked?.responses).toEqual([
      {
        status: 503,
        grpcStatus: undefined,
        isOverloaded: false,
        loadMetrics: "JSON {}",
        headers: new Map([
          [":status", "503"],
          ["endpoint-load-metrics", "JSON {}"],
        ]),
        metadata: undefined,
      },
    ]);
    expect(asked?.ends).toEqual([]);
    expect(counts.openCount).toBe(1);
    exchange.end();
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(asked?.ends).toEqual(["completed"]);
    expect(counts.openCount).toBe(0);
  });

  it("answers a refusal in its own words and ends the stream", async () => {
    const { running, keeper } = await start((_request, call) =>
      call.refused({
        status: 429,
        grpcStatus: 8,
        headers: [{ name: "retry-after", value: "2" }],
        body: "later",
        details: "headgate_priority",
      }),
    );
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(exchange.answers).toMatchObject([
      {
        response: {
          case: "immediateResponse",
          value: {
            status: { code: 429 },
            headers: { setHeaders: [{ header: { key: "retry-after" } }] },
            body: Buffer.from("later"),
            grpcStatus: { status: 8 },
            details: "headgate_priority",
          },
        },
      },
    ]);
    expect(keeper.asked[0]?.ends).toEqual([]);
  });

  it("lets a request wait, and tells who decides when its caller leaves", async () => {
    const { running, keeper } = await start((_request, call) => call.waiting(2_500));
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    const [first] = await exchange.answered(1);
    expect(first?.overrideMessageTimeout).toMatchObject({ seconds: 2n, nanos: 500_000_000 });
    expect(first?.response.case).toBeUndefined();
    exchange.end();
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(keeper.asked[0]?.ends).toEqual(["left"]);
    const reset = openExchange(running);
    reset.send(requestHeaders());
    await reset.answered(1);
    reset.cancel();
    await waitFor("the place is given up", () => keeper.asked[1]?.ends.length === 1);
    expect(keeper.asked[1]?.ends).toEqual(["left"]);
  });

  it("lets it in after the wait", async () => {
    const { running, keeper } = await start((_request, call) => call.waiting(2_500));
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    await exchange.answered(1);
    keeper.asked[0]?.call.admitted(plainTerms);
    const answers = await exchange.answered(2);
    expect(answers[1]?.response.case).toBe("requestHeaders");
    exchange.send(responseHeaders());
    await exchange.answered(3);
    exchange.end();
    await exchange.over();
    expect(keeper.asked[0]?.ends).toEqual(["completed"]);
  });

  it("answers nothing where Envoy only lets it observe", async () => {
    const { running, keeper } = await start(admit);
    const exchange = openExchange(running);
    exchange.send({ ...requestHeaders(), observabilityMode: true });
    exchange.send({ ...responseHeaders(), observabilityMode: true });
    exchange.end();
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(exchange.answers).toEqual([]);
    expect(keeper.asked[0]?.request.isObserved).toBe(true);
    expect(keeper.asked[0]?.ends).toEqual(["completed"]);
  });

  it.each([
    {
      what: "bytes that are not a message",
      send: Buffer.from([0xff]),
      code: 3,
      fault: "malformed",
    },
    { what: "a message without a part", send: Buffer.alloc(0), code: 3, fault: "unknown" },
    { what: "a body first", send: bodyFirst, code: 9, fault: "noRequestHeaders" },
  ] as const)("ends the stream with $code for $what", async ({ send, code, fault }) => {
    const { running, keeper, counts } = await start(admit);
    const exchange = openExchange(running);
    exchange.send(send);
    expect(await exchange.over()).toMatchObject({ code });
    expect(counts.faults).toEqual(new Map([[fault, 1]]));
    expect(counts.openCount).toBe(0);
    expect(keeper.asked).toEqual([]);
  });

  // RESOURCE_EXHAUSTED let the request pass every limit of an Envoy that fails open.
  it("refuses a request whose header fields are larger than are read", async () => {
    const { running, keeper, counts } = await start(admit);
    const exchange = openExchange(running);
    exchange.send(requestHeaders({ ":path": "/", "x-large": "a".repeat(messageBytesMax) }));
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(exchange.answers).toMatchObject([
      {
        response: {
          case: "immediateResponse",
          value: {
            status: { code: 431 },
            grpcStatus: { status: 8 },
            details: "headgate_request_too_large",
          },
        },
      },
    ]);
    expect([keeper.asked, counts.openCount]).toEqual([[], 0]);
    expect(counts.faults).toEqual(new Map([["tooLarge", 1]]));
  });

  it.each([
    { what: "is larger than is read", body: { body: new Uint8Array(17_100_000) } },
    {
      what: "has more beside it than is read",
      body: { body: Buffer.from("a") },
      metadataContext: { filterMetadata: { large: { text: "a".repeat(messageBytesMax) } } },
    },
  ])("refuses a request whose body $what", async ({ body, metadataContext }) => {
    const { running, keeper, counts } = await start(admit);
    keeper.readsBodies = true;
    const exchange = openExchange(running);
    exchange.send(bufferedRequest());
    await exchange.answered(1);
    exchange.send({
      request: { case: "requestBody", value: body },
      ...(metadataContext === undefined ? {} : { metadataContext }),
    });
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(exchange.answers[1]).toMatchObject({
      response: {
        case: "immediateResponse",
        value: { status: { code: 413 }, details: "headgate_body_too_large" },
      },
    });
    expect([keeper.asked, keeper.bodies, counts.openCount]).toEqual([[], [], 0]);
    expect(counts.faults).toEqual(new Map([["tooLarge", 1]]));
  });

  it("reads a body of 8 MiB", async () => {
    const { running, keeper } = await start(admit);
    keeper.readsBodies = true;
    const exchange = openExchange(running);
    exchange.send(bufferedRequest());
    const body = new Uint8Array(8_388_608);
    exchange.send({ request: { case: "requestBody", value: { body, endOfStream: true } } });
    expect(await exchange.answered(2)).toMatchObject([
      { response: { case: "requestHeaders" } },
      { response: { case: "requestBody" } },
    ]);
    expect(keeper.asked[0]?.request.facts?.requestBytes).toBe(8_388_608);
    exchange.end();
    expect(await exchange.over()).toMatchObject({ code: 0 });
  });

  it("fails a request whose body its reader fails at, for a bug", async () => {
    const { running, keeper, counts } = await start(admit);
    keeper.readsBodies = true;
    keeper.readBody = () => {
      throw new Error("a bug");
    };
    const exchange = openExchange(running);
    exchange.send(bufferedRequest());
    exchange.send({ request: { case: "requestBody", value: {} } });
    expect(await exchange.over()).toMatchObject({ code: 13 });
    expect(running.bugs.splice(0)).toHaveLength(1);
    expect([keeper.asked, counts.openCount]).toEqual([[], 0]);
  });

  it("ends a stream well whose request was let in, and gives its place back", async () => {
    const { running, keeper, counts } = await start(admit);
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    await exchange.answered(1);
    exchange.send(responseHeaders({ "x-large": "a".repeat(messageBytesMax) }));
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect([keeper.asked[0]?.ends, counts.openCount]).toEqual([["left"], 0]);
  });

  it("lets an answer pass that was made before it was asked, and counts it", async () => {
    const { running, keeper, counts } = await start(admit);
    const exchange = openExchange(running);
    exchange.send(responseHeaders({ ":status": "429" }));
    expect(await exchange.answered(1)).toMatchObject([{ response: { case: "responseHeaders" } }]);
    exchange.end();
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(counts.answeredBeforeCount).toBe(1);
    expect(counts.faults).toEqual(new Map());
    expect(counts.openCount).toBe(0);
    expect(keeper.asked).toEqual([]);
  });

  it("gives the place back of an exchange that breaks the protocol", async () => {
    const { running, keeper, counts } = await start(admit);
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    await exchange.answered(1);
    exchange.send(requestHeaders());
    const { code, details } = await exchange.over();
    expect(code).toBe(3);
    expect(details).toContain("processing_mode");
    expect(keeper.asked[0]?.ends).toEqual(["broken"]);
    expect(counts.openCount).toBe(0);
  });

  it("fails the stream, and no other, where who decides has a fault", async () => {
    const { running, counts } = await start((request, call) => {
      if (request.headers.get("x-name") === "bad") throw new TypeError("secret-58");
      call.admitted(plainTerms);
    });
    const bad = openExchange(running);
    bad.send(requestHeaders({ "x-name": "bad" }));
    const { code, details } = await bad.over();
    expect(code).toBe(13);
    expect(details).not.toContain("secret-58");
    expect(running.bugs).toHaveLength(1);
    expect(counts.openCount).toBe(0);
    const good = openExchange(running);
    good.send(requestHeaders());
    await good.answered(1);
  });

  it("holds 10,000 exchanges, and gives all places back when callers vanish", async () => {
    const { running, keeper, counts } = await start(admit);
    const sessions: ClientHttp2Session[] = [];
    for (let i = 0; i < 10; i += 1) sessions.push((await transports.openRaw(running)).session);
    for (const session of sessions) {
      for (let i = 0; i < 1_000; i += 1) openRawExchange(session);
    }
    await waitFor("all are in", () => keeper.asked.length === 10_000, { withinMs: 30_000 });
    expect(counts.openCount).toBe(10_000);
    for (const session of sessions) session.destroy();
    await waitFor("all have left", () => counts.openCount === 0, { withinMs: 30_000 });
    expect(keeper.asked.map(({ ends }) => ends.join())).toEqual(new Array(10_000).fill("left"));
  });

  it("ends the stream with the answer where nobody needs to know how it ends", async () => {
    const { running, keeper, counts } = await start((_request, call) =>
      call.admitted({ ...plainTerms, isFollowed: false }),
    );
    const exchange = openExchange(running);
    exchange.send(requestHeaders());
    expect(await exchange.over()).toMatchObject({ code: 0 });
    expect(exchange.answers).toHaveLength(1);
    await waitFor("the place is given back", () => keeper.asked[0]?.ends.length === 1);
    expect(counts.openCount).toBe(0);
  });
});
