import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { errorRows, ServiceError } from "../../../../src/core/base/errors.js";
import { codeName, toConnectError } from "../../../../src/rpc/admin/connect-errors.js";
import { AdminFailure } from "../../../../src/rpc/admin/failures.js";

describe("toConnectError()", () => {
  it.each([
    ["invalid", Code.InvalidArgument],
    ["notFound", Code.NotFound],
    ["conflict", Code.Aborted],
    ["forbidden", Code.PermissionDenied],
    ["unknownCaller", Code.Unauthenticated],
    ["refused", Code.FailedPrecondition],
    ["exhausted", Code.ResourceExhausted],
    ["absent", Code.Unimplemented],
    ["unavailable", Code.Unavailable],
  ] as const)("turns %s into a code, with its words", (kind, code) => {
    const { error, isBug } = toConnectError(new AdminFailure(kind, "words"));
    expect([error.code, error.rawMessage, isBug]).toEqual([code, "words", false]);
  });

  it("keeps a bug's words inside", () => {
    const { error, isBug } = toConnectError(new Error("the caller's secret"));
    expect([error.code, error.rawMessage, isBug]).toEqual([
      Code.Internal,
      errorRows.INTERNAL.meaning,
      true,
    ]);
  });

  it("says of each environment failure whether to try again", () => {
    for (const code of Object.keys(errorRows)) {
      const known = code as keyof typeof errorRows;
      const { error } = toConnectError(new ServiceError(known));
      const isAgain = [Code.Unavailable, Code.DeadlineExceeded, Code.ResourceExhausted];
      if (errorRows[known].transient) expect(isAgain).toContain(error.code);
    }
    const own = new ConnectError("x", Code.Canceled);
    expect(toConnectError(own).error).toBe(own);
  });
});

describe("codeName()", () => {
  it("is the wire's word", () => {
    expect(codeName(Code.PermissionDenied)).toBe("permission_denied");
    expect(codeName(Code.Unauthenticated)).toBe("unauthenticated");
  });
});
