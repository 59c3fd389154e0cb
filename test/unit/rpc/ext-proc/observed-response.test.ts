import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { array, assert, constantFrom, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { ExchangeCounts } from "../../../../src/decide/admission/exchange-counts.js";
import { ProcessingRequestSchema } from "../../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { createUsageCodec, observeUsage } from "../../../../src/rpc/ext-proc/observed-response.js";
import type { BidiAnswers, BidiReader } from "../../../../src/wire/grpc/service.js";
import { propertyRuns } from "../../../support/seeds.js";
import { RecordingObservers } from "../../../support/usage-observers.js";

const metadataContext = {
  filterMetadata: { headgate: { reservation: "r-1", service: "llm", other: "x", amount: [1] } },
};

function encode(shape: MessageInitShape<typeof ProcessingRequestSchema>): Buffer {
  const message = create(ProcessingRequestSchema, { observabilityMode: true, ...shape });
  return Buffer.from(toBinary(ProcessingRequestSchema, message));
}

function body(text: string, endOfStream = false) {
  return { case: "responseBody", value: { body: Buffer.from(text), endOfStream } } as const;
}

const status = { headers: [{ key: ":status", rawValue: Buffer.from("200") }] };
const headers = { case: "responseHeaders", value: { headers: status } } as const;
const usage = { headers: [{ key: "x-usage", rawValue: Buffer.from("42") }] };

/** What Envoy may send, and what it may not. */
const messages = {
  requestHeaders: encode({ request: { case: "requestHeaders", value: {} }, metadataContext }),
  headers: encode({ request: headers, metadataContext }),
  onlyHeaders: encode({
    request: { case: "responseHeaders", value: { headers: status, endOfStream: true } },
    metadataContext,
  }),
  piece: encode({ request: body("piece"), metadataContext }),
  last: encode({ request: body("", true), metadataContext }),
  trailers: encode({
    request: { case: "responseTrailers", value: { trailers: usage } },
    metadataContext,
  }),
  unknownCall: encode({ request: headers }),
  waiting: encode({ request: headers, metadataContext, observabilityMode: false }),
  unknown: encode({ metadataContext }),
  malformed: Buffer.of(0xff),
} as const;
type MessageName = keyof typeof messages;

/** What happens beside messages. */
const callEvents = ["end", "cancel", "drain", "tooLarge"] as const;
type EventName = MessageName | (typeof callEvents)[number];

/** One stream, and what was done with it. */
class Stream implements BidiAnswers {
  readonly observers = new RecordingObservers();
  readonly counts = new ExchangeCounts();
  readonly done: string[] = [];
  nextCount = 0;
  readonly #reader: BidiReader;

  constructor() {
    const { observers, counts } = this;
    const observing = { observers, counts, codec: createUsageCodec(observers) };
    const peer = { identity: "envoy" };
    const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined, peer };
    this.#reader = observeUsage(observing, call as never, this);
  }

  tell(name: EventName): void {
    if (name === "end") this.#reader.onEnd();
    else if (name === "cancel") this.#reader.onCancel();
    else if (name === "drain") this.#reader.onDrain();
    else if (name === "tooLarge") this.#reader.onTooLarge?.();
    else this.#reader.onMessage(messages[name]);
  }

  send(): boolean {
    this.done.push("sent");
    return true;
  }

  next(): void {
    this.nextCount += 1;
  }

  end(): void {
    this.done.push("ended");
  }

  fail(): void {
    this.done.push("failed");
  }
}

function run(...names: readonly EventName[]): Stream {
  const stream = new Stream();
  for (const name of names) stream.tell(name);
  return stream;
}

describe("a stream that shows a response", () => {
  it("tells its observer all of it, and the wanted fields alone", () => {
    const { observers, done, nextCount } = run("headers", "piece", "piece", "trailers");
    expect(observers.shown).toMatchObject([
      {
        fields: new Map([
          ["reservation", "r-1"],
          ["service", "llm"],
        ]),
        headers: [new Map([[":status", "200"]])],
        text: "piecepiece",
        trailers: [new Map([["x-usage", "42"]])],
        ends: [true],
      },
    ]);
    expect(done).toEqual(["ended"]);
    expect(nextCount).toBe(3);
  });

  it.each([
    { it: "has no body", events: ["onlyHeaders"], ends: [true] },
    { it: "has a body", events: ["headers", "piece", "last"], ends: [true] },
    { it: "shows no headers", events: ["piece", "last"], ends: [true] },
    { it: "breaks off", events: ["headers", "piece", "end"], ends: [false] },
    { it: "is reset", events: ["headers", "cancel"], ends: [false] },
    { it: "grows too large", events: ["headers", "tooLarge"], ends: [false] },
    { it: "becomes nonsense", events: ["headers", "malformed"], ends: [false] },
    { it: "wants an answer", events: ["headers", "waiting"], ends: [false] },
  ] as const)("ends once where the response $it", ({ events, ends }) => {
    expect(run(...events, "end", "cancel").observers.shown[0]?.ends).toEqual(ends);
  });

  it("shows nothing of requests", () => {
    const { observers, done, nextCount } = run("requestHeaders");
    expect(observers.openedCount).toBe(0);
    expect(done).toEqual([]);
    expect(nextCount).toBe(1);
  });

  it("ends at once where nobody wants to see it, and reads nothing more", () => {
    const { observers, done } = run("unknownCall", "piece");
    expect(observers.openedCount).toBe(1);
    expect(observers.shown).toEqual([]);
    expect(done).toEqual(["ended"]);
  });

  it.each([
    { name: "malformed", fault: "malformed" },
    { name: "unknown", fault: "unknown" },
    { name: "waiting", fault: "notObserved" },
    { name: "tooLarge", fault: "tooLarge" },
  ] as const)("counts $fault", ({ name, fault }) => {
    const { counts, done } = run(name, name);
    expect(counts.faults).toEqual(new Map([[fault, 1]]));
    expect(done).toEqual([name === "tooLarge" ? "ended" : "failed"]);
  });

  it("fails when its observer does, and ends it nevertheless", () => {
    const stream = new Stream();
    stream.tell("headers");
    const [shown] = stream.observers.shown;
    Object.defineProperty(shown, "bodyBytes", {
      get: () => {
        throw new Error("a bug");
      },
    });
    stream.tell("piece");
    stream.tell("end");
    expect(stream.done).toEqual(["failed"]);
    expect(shown?.ends).toEqual([false]);
  });

  it("ends once, tells its observer so once, and sends nothing, in any order of events", () => {
    const names = [...Object.keys(messages), ...callEvents] as EventName[];
    assert(
      property(array(constantFrom(...names), { maxLength: 12 }), (events) => {
        const { done, observers, counts } = run(...events, "end");
        expect(done).toHaveLength(1);
        expect(done).not.toContain("sent");
        expect(observers.shown.length).toBeLessThanOrEqual(1);
        for (const { ends } of observers.shown) expect(ends).toHaveLength(1);
        expect(counts.openCount).toBe(0);
      }),
      propertyRuns(500),
    );
  });
});
