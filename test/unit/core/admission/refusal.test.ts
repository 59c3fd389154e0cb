import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { Refusal } from "../../../../src/core/admission/exchange-messages.js";
import {
  isGrpcRequest,
  type RefusalCause,
  type RefusedRequest,
  reasonHeader,
  refusalCauses,
  refusalOf,
  refusalRows,
} from "../../../../src/core/admission/refusal.js";
import type { RuleDisclosure } from "../../../../src/core/limits/limit.js";
import {
  defaultDisclosure,
  type ReportedRule,
  ruleHeader,
} from "../../../../src/core/limits/reported-rule.js";
import { StatusSchema } from "../../../../src/gen/google/rpc/status_pb.js";

const http: RefusedRequest = { method: "GET", contentType: "application/json" };
const grpc: RefusedRequest = { method: "POST", contentType: "application/grpc+proto" };

function refuse(
  cause: RefusalCause,
  request: RefusedRequest,
  statusByCause: Partial<Record<RefusalCause, number>> = {},
): Refusal {
  return refusalOf({ statusByCause }, { service: "orders", cause, request, retrySeconds: 7 });
}

function header({ headers }: Refusal, name: string): string | undefined {
  return headers.find((one) => one.name === name)?.value;
}

describe("refusalOf()", () => {
  it.each([
    { cause: "rateLimit", status: 429, grpcStatus: 8 },
    { cause: "priority", status: 429, grpcStatus: 8 },
    { cause: "queueFull", status: 429, grpcStatus: 8 },
    { cause: "queueTimeout", status: 429, grpcStatus: 8 },
    { cause: "waitCap", status: 429, grpcStatus: 8 },
    { cause: "sigmoid", status: 429, grpcStatus: 8 },
    { cause: "concurrency", status: 503, grpcStatus: 14 },
    { cause: "load", status: 503, grpcStatus: 14 },
    { cause: "gate", status: 503, grpcStatus: 14 },
    { cause: "throttle", status: 503, grpcStatus: 14 },
    { cause: "ownOverload", status: 503, grpcStatus: 14 },
    { cause: "deadline", status: 504, grpcStatus: 4 },
  ] as const)("answers $cause with $status or $grpcStatus", ({ cause, status, grpcStatus }) => {
    expect(refuse(cause, http)).toMatchObject({ status, grpcStatus: undefined });
    expect(refuse(cause, grpc)).toMatchObject({ status, grpcStatus });
  });

  it("names service and cause in metadata, and in a header where the policy says so", () => {
    const named = (fields: Partial<RuleDisclosure>, reportedRule?: ReportedRule) => {
      const settings = { statusByCause: {}, disclosure: { ...defaultDisclosure, ...fields } };
      const question = {
        service: "orders",
        cause: "gate",
        request: http,
        retrySeconds: 7,
      } as const;
      const refusal = refusalOf(settings, { ...question, reportedRule });
      const fieldsOf = refusal.metadata && Object.fromEntries(refusal.metadata.fields);
      return [header(refusal, ruleHeader), fieldsOf];
    };
    const own = { service: "orders", cause: "gate" };
    expect(named({})).toEqual([undefined, own]);
    expect(named({ header: true })).toEqual(["orders/gate", own]);
    expect(named({ metadata: false })).toEqual([undefined, undefined]);
    const reportedRule = {
      domain: "shop",
      rule: "user",
      limit: "daily",
      disclosure: defaultDisclosure,
    };
    const rule = { domain: "shop", rule: "user", limit: "daily" };
    // A rate limit's rule says for itself where it is named.
    expect(named({ header: true }, reportedRule)).toEqual([undefined, { ...own, ...rule }]);
    const loud = {
      ...reportedRule,
      disclosure: { ...defaultDisclosure, header: true, metadata: false },
    };
    expect(named({ metadata: false }, loud)).toEqual(["user/daily", undefined]);
    expect(
      refusalOf(
        { statusByCause: {} },
        { service: "orders", cause: "gate", request: grpc, retrySeconds: 7 },
      ).metadata?.namespace,
    ).toBe("headgate");
  });

  it("gives every cause words, details without spaces, and a time to come back", () => {
    for (const cause of refusalCauses) {
      for (const request of [http, grpc, { method: "HEAD", contentType: undefined }]) {
        const refusal = refuse(cause, request);
        expect(header(refusal, "retry-after")).toBe("7");
        expect(header(refusal, reasonHeader)).toBe(refusalRows[cause].reason);
        expect(refusalRows[cause].reason).toMatch(/^[A-Z][ -~]{15,90}\.$/);
        expect(refusal.details).toMatch(/^headgate_[a-z_]+$/);
      }
    }
    expect(refuse("queueFull", http).details).toBe("headgate_queue_full");
  });

  it("has a body as RFC 9457 wants it", () => {
    const refusal = refuse("queueFull", http);
    expect(header(refusal, "content-type")).toBe("application/problem+json");
    expect(JSON.parse(refusal.body)).toEqual({
      type: "about:blank",
      title: "Too Many Requests",
      status: 429,
      detail: "The service is busy, and its queue is full.",
      cause: "queueFull",
      "retry-after": 7,
    });
  });

  it("has no body for HEAD, and the headers all the same", () => {
    const refusal = refuse("gate", { method: "HEAD", contentType: undefined });
    expect(refusal.body).toBe("");
    expect(refusal.headers).toEqual(refuse("gate", http).headers);
  });

  it("tells gRPC the reason as its message, and when to come back as details", () => {
    const refusal = refuse("deadline", grpc);
    expect(refusal.body).toBe("The remaining time is too short for a response.");
    expect(header(refusal, "content-type")).toBeUndefined();
    const value = header(refusal, "grpc-status-details-bin") ?? "";
    expect(value).not.toContain("=");
    const status = fromBinary(StatusSchema, Buffer.from(value, "base64"));
    expect(status).toMatchObject({ code: 4, message: refusal.body });
    expect(status.details[0]?.typeUrl).toBe("type.googleapis.com/google.rpc.RetryInfo");
  });

  it("takes another status where the policy has one, with the name it then has", () => {
    const refusal = refuse("queueFull", http, { queueFull: 503 });
    expect(refusal.status).toBe(503);
    expect(JSON.parse(refusal.body)).toMatchObject({ title: "Service Unavailable", status: 503 });
    expect(JSON.parse(refuse("queueFull", http, { queueFull: 529 }).body)).not.toHaveProperty(
      "title",
    );
    expect(refuse("gate", http, { queueFull: 529 }).status).toBe(503);
  });

  it("repeats nothing of the request", () => {
    const secret = { method: "S3CRET", contentType: "application/grpc+s3cret" };
    for (const cause of refusalCauses) {
      for (const contentType of [secret.contentType, "text/s3cret"]) {
        const refusal = refuse(cause, { ...secret, contentType });
        expect(JSON.stringify(refusal).toLowerCase()).not.toContain("s3cret");
      }
    }
  });
});

describe("isGrpcRequest()", () => {
  it.each([
    { contentType: "application/grpc", is: true },
    { contentType: "application/grpc+proto", is: true },
    { contentType: "application/grpc;charset=utf-8", is: true },
    { contentType: "Application/GRPC", is: true },
    { contentType: "application/grpc-web+proto", is: false },
    { contentType: "application/json", is: false },
    { contentType: "", is: false },
    { contentType: undefined, is: false },
  ])("is $is for $contentType", ({ contentType, is }) => {
    expect(isGrpcRequest(contentType)).toBe(is);
  });
});
