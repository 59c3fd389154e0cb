import { describe, expect, it } from "vitest";
import { type ErrorCode, errorRows, ServiceError } from "../../../../src/core/base/errors.js";
import {
  GrpcFailure,
  statusRows,
  toCallFailure,
  toFailure,
} from "../../../../src/rpc/grpc/status.js";

const codes = Object.keys(errorRows) as ErrorCode[];
const unknownStatus = 2;

describe("statusRows", () => {
  it("has a row for every error code and no other", () => {
    expect(Object.keys(statusRows).sort()).toEqual([...codes].sort());
  });

  it.each(codes)("never answers %s with OK or UNKNOWN, nor with a success over HTTP", (code) => {
    const { grpc, http } = statusRows[code];
    expect(grpc).toBeGreaterThan(0);
    expect(grpc).toBeLessThanOrEqual(16);
    expect(grpc).not.toBe(unknownStatus);
    expect(http).toBeGreaterThanOrEqual(400);
  });
});

describe("toFailure()", () => {
  it("answers a ServiceError with its row and its own words", () => {
    const failure = toFailure(new ServiceError("REQUEST_INVALID", "domain is empty."));
    expect(failure).toMatchObject({ code: "REQUEST_INVALID", grpcStatus: 3, httpStatus: 400 });
    expect(failure.message).toContain("domain is empty.");
  });

  it.each([new Error("secret-key-7"), "secret-key-7", undefined, { code: 5 }])(
    "hides the words of anything else: %s",
    (thrown) => {
      const failure = toFailure(thrown);
      expect(failure).toMatchObject({ code: "INTERNAL", grpcStatus: 13, httpStatus: 500 });
      expect(failure.message).not.toContain("secret-key-7");
    },
  );
});

describe("toCallFailure()", () => {
  it("keeps a gRPC failure as it is", () => {
    expect(toCallFailure(new GrpcFailure(5, "nobody here"))).toEqual({
      grpcStatus: 5,
      message: "nobody here",
      isBug: false,
    });
  });

  it("tells a bug from a failure of the environment", () => {
    expect(toCallFailure(new TypeError("x")).isBug).toBe(true);
    expect(toCallFailure(new ServiceError("STORE_TIMEOUT")).isBug).toBe(false);
  });
});
