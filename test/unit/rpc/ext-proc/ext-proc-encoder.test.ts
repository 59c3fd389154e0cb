import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  ContinueReply,
  ExchangePart,
  ExchangeReply,
  Refusal,
  ReplyMetadata,
} from "../../../../src/core/admission/exchange-messages.js";
import type { HeaderField } from "../../../../src/core/base/header-field.js";
import {
  type ProcessingResponse,
  ProcessingResponseSchema,
} from "../../../../src/gen/envoy/service/ext_proc/v3/external_processor_pb.js";
import { ExchangeReplyEncoder } from "../../../../src/rpc/ext-proc/ext-proc-encoder.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { propertyRuns } from "../../../support/seeds.js";

type ResponseShape = MessageInitShape<typeof ProcessingResponseSchema>;

const parts: readonly ExchangePart[] = [
  "requestHeaders",
  "requestBody",
  "requestTrailers",
  "responseHeaders",
  "responseBody",
  "responseTrailers",
];

const goOn: Omit<ContinueReply, "part"> = {
  kind: "continue",
  setHeaders: [],
  removeHeaders: [],
  metadata: undefined,
  responseHeaders: undefined,
};

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 60 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCodePoint, maxLength: 60 }) },
  { weight: 1, arbitrary: fc.string({ unit: anyCodePoint, minLength: 100, maxLength: 400 }) },
);
const header: fc.Arbitrary<HeaderField> = fc.record(
  { name: text, value: text, isAppended: fc.constant(true) },
  { requiredKeys: ["name", "value"] },
);
const headers = fc.array(header, { maxLength: 6 });
// The object that the other encoder wants has no room for this one name.
const fieldName = text.filter((name) => name !== "__proto__");
const fieldValue = fc.oneof(text, fc.double(), fc.boolean());
const metadata = fc.record({
  namespace: fieldName,
  fields: fc.array(fc.tuple(fieldName, fieldValue), { maxLength: 6 }).map((rows) => new Map(rows)),
});
const continueKeys: (keyof ContinueReply)[] = [
  "kind",
  "part",
  "setHeaders",
  "removeHeaders",
  "metadata",
  "responseHeaders",
];
const continues: fc.Arbitrary<ContinueReply> = fc.record(
  {
    kind: fc.constant("continue"),
    part: fc.constantFrom(...parts),
    setHeaders: headers,
    removeHeaders: fc.array(text, { maxLength: 4 }),
    metadata: fc.option(metadata, { nil: undefined }),
    responseHeaders: fc.constantFrom("send", "skip", undefined),
    clearsRoute: fc.constant(true),
  },
  { requiredKeys: continueKeys },
);
const refusals: fc.Arbitrary<Refusal> = fc.record(
  {
    status: fc.integer({ min: 400, max: 599 }),
    grpcStatus: fc.option(fc.nat(16), { nil: undefined }),
    headers,
    body: fc.oneof(text, fc.string({ maxLength: 20_000 })),
    details: text,
    metadata,
  },
  { requiredKeys: ["status", "grpcStatus", "headers", "body", "details"] },
);
const replies: fc.Arbitrary<ExchangeReply> = fc.oneof(
  { weight: 4, arbitrary: continues },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("immediate"), refusal: refusals }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("wait"), timeoutMs: fc.nat(100_000_000) }),
  },
);

function mutationShape(setHeaders: readonly HeaderField[], removeHeaders: readonly string[]) {
  return {
    setHeaders: setHeaders.map(({ name, value, isAppended }) => ({
      header: { key: name, rawValue: Buffer.from(value, "utf8") },
      ...(isAppended ? { append: true } : { appendAction: 2 }),
    })),
    removeHeaders: [...removeHeaders],
  };
}

function partShape(reply: ContinueReply): NonNullable<ResponseShape["response"]> {
  const { part, setHeaders, removeHeaders, clearsRoute = false } = reply;
  const hasMutation = setHeaders.length + removeHeaders.length > 0;
  const mutation = hasMutation ? { headerMutation: mutationShape(setHeaders, removeHeaders) } : {};
  // Trailers come too late for another route.
  if (part === "requestTrailers" || part === "responseTrailers") {
    return { case: part, value: mutation };
  }
  if (!hasMutation && !clearsRoute) return { case: part, value: {} };
  return { case: part, value: { response: { ...mutation, clearRouteCache: clearsRoute } } };
}

function metadataShape(sent: ReplyMetadata | undefined) {
  if (sent === undefined) return {};
  return { dynamicMetadata: { [sent.namespace]: Object.fromEntries(sent.fields) } };
}

/** The same reply as the general encoder is told it. */
function shapeOf(reply: ExchangeReply): ResponseShape {
  if (reply.kind === "wait") {
    const { timeoutMs } = reply;
    const seconds = BigInt(Math.floor(timeoutMs / 1_000));
    return { overrideMessageTimeout: { seconds, nanos: (timeoutMs % 1_000) * 1_000_000 } };
  }
  if (reply.kind === "immediate") {
    const { status, grpcStatus, headers: set, body, details } = reply.refusal;
    const value = {
      status: { code: status },
      ...(set.length > 0 && { headers: mutationShape(set, []) }),
      body: Buffer.from(body, "utf8"),
      ...(grpcStatus !== undefined && { grpcStatus: { status: grpcStatus } }),
      details,
    };
    const response = { case: "immediateResponse", value } as const;
    return { response, ...metadataShape(reply.refusal.metadata) };
  }
  return {
    response: partShape(reply),
    ...metadataShape(reply.metadata),
    ...(reply.responseHeaders && {
      modeOverride: {
        responseHeaderMode: reply.responseHeaders === "send" ? 1 : 2,
        responseTrailerMode: 1,
      },
    }),
  };
}

function decoded(bytes: Uint8Array): ProcessingResponse {
  // A copy that is no Buffer, as comparisons ask for.
  return fromBinary(ProcessingResponseSchema, Uint8Array.from(bytes));
}

describe("ExchangeReplyEncoder", () => {
  it("writes what protobuf-es reads as the message that was meant", () => {
    const encoder = new ExchangeReplyEncoder();
    fc.assert(
      fc.property(replies, (reply) => {
        const wanted = toBinary(
          ProcessingResponseSchema,
          create(ProcessingResponseSchema, shapeOf(reply)),
        );
        const bytes = encoder.encode(reply);
        expect(decoded(bytes)).toEqual(decoded(wanted));
        // Nothing is written that need not be: only the order of map entries may differ.
        expect(bytes.length).toBe(wanted.length);
      }),
      propertyRuns(300),
    );
  });

  it("writes an answer without metadata byte by byte as protobuf-es does", () => {
    const encoder = new ExchangeReplyEncoder();
    const plain = replies.filter((reply) => {
      if (reply.kind === "immediate") return reply.refusal.metadata === undefined;
      return reply.kind !== "continue" || reply.metadata === undefined;
    });
    fc.assert(
      fc.property(plain, (reply) => {
        const wanted = toBinary(
          ProcessingResponseSchema,
          create(ProcessingResponseSchema, shapeOf(reply)),
        );
        expect(Buffer.from(encoder.encode(reply)).toString("hex")).toBe(
          Buffer.from(wanted).toString("hex"),
        );
      }),
      propertyRuns(300),
    );
  });

  it.each(parts)("says that %s goes on with the same bytes always", (part) => {
    const encoder = new ExchangeReplyEncoder();
    const bytes = encoder.encode({ ...goOn, part });
    const message = create(ProcessingResponseSchema, { response: { case: part, value: {} } });
    expect(Buffer.from(bytes)).toEqual(Buffer.from(toBinary(ProcessingResponseSchema, message)));
    expect(encoder.encode({ ...goOn, part })).toBe(bytes);
  });

  it("gives bytes that later answers do not change", () => {
    const encoder = new ExchangeReplyEncoder();
    const answers = Array.from({ length: 2_000 }, (_, i) => {
      const refusal = { status: 429, grpcStatus: 8, headers: [], body: `body ${i}`, details: "d" };
      return encoder.encode({ kind: "immediate", refusal });
    });
    const bodies = answers.map((bytes) => {
      const { response } = decoded(bytes);
      return response.case === "immediateResponse" ? Buffer.from(response.value.body) : undefined;
    });
    expect(bodies.map(String)).toEqual(answers.map((_, i) => `body ${i}`));
  });

  it("has room for an answer of any length, in letters of any", () => {
    const encoder = new ExchangeReplyEncoder();
    for (const length of [0, 1, 127, 128, 5_460, 5_461, 5_462, 100_000]) {
      const body = "\uffee".repeat(length);
      const refusal = { status: 503, grpcStatus: undefined, headers: [], body, details: "" };
      const { response } = decoded(encoder.encode({ kind: "immediate", refusal }));
      const value = response.case === "immediateResponse" ? response.value : undefined;
      // Not toEqual(), which looks at each byte as an object's property.
      expect(Buffer.from(value?.body ?? "").equals(Buffer.from(body)), `${length}`).toBe(true);
    }
  });

  it.each([
    { timeoutMs: 0.2, seconds: 0n, nanos: 1_000_000 },
    { timeoutMs: 250, seconds: 0n, nanos: 250_000_000 },
    { timeoutMs: 999.001, seconds: 1n, nanos: 0 },
    { timeoutMs: 2_010, seconds: 2n, nanos: 10_000_000 },
  ])("lets Envoy wait $timeoutMs ms, in whole ones, rounded up", ({ timeoutMs, ...wanted }) => {
    const message = decoded(new ExchangeReplyEncoder().encode({ kind: "wait", timeoutMs }));
    expect(message.overrideMessageTimeout).toMatchObject(wanted);
    expect(message.response.case).toBeUndefined();
  });

  it.each([Number.POSITIVE_INFINITY, Number.NaN, -1_000])("refuses to wait %d ms", (timeoutMs) => {
    const encoder = new ExchangeReplyEncoder();
    expect(() => encoder.encode({ kind: "wait", timeoutMs })).toThrow("whole");
    // What it had begun does not stay.
    expect(decoded(encoder.encode({ ...goOn, part: "requestBody" })).response.case).toBe(
      "requestBody",
    );
  });

  it("replaces the halves of letters that UTF-8 cannot say", () => {
    const setHeaders = [{ name: "x-name", value: "a\ud800b" }];
    const bytes = new ExchangeReplyEncoder().encode({
      ...goOn,
      part: "requestTrailers",
      setHeaders,
    });
    const { response } = decoded(bytes);
    const mutation =
      response.case === "requestTrailers" ? response.value.headerMutation : undefined;
    expect(Buffer.from(mutation?.setHeaders[0]?.header?.rawValue ?? "").toString()).toBe(
      "a\ufffdb",
    );
  });
});
