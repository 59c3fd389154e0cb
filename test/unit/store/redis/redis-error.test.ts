import { describe, expect, it } from "vitest";
import { type ErrorCode, ServiceError } from "../../../../src/core/base/errors.js";
import {
  isLastingRefusal,
  isNoScriptReply,
  isReadOnlyReply,
  isSelectReply,
  SlotRefusal,
  toStoreError,
} from "../../../../src/store/redis/redis-error.js";

/** As the client library makes them: with the command, and so with keys and passwords. */
function replyError(message: string): Error {
  return Object.assign(new Error(message), {
    name: "ReplyError",
    command: { name: "auth", args: ["gate", "hunter2"] },
  });
}

const inScript = "script: 4e6d, on @user_script:120.";
const before7 = "ERR Error running script (call to f_4e6d): @user_script:120: -";

describe("toStoreError()", () => {
  it.each([
    [`OOM command not allowed when used memory > 'maxmemory'. ${inScript}`, "STORE_OUT_OF_MEMORY"],
    [`${before7}OOM command not allowed when used memory`, "STORE_OUT_OF_MEMORY"],
    [`READONLY You can't write against a read only replica. ${inScript}`, "STORE_READ_ONLY"],
    [`${before7}READONLY You can't write against a read only replica.`, "STORE_READ_ONLY"],
    ["LOADING Redis is loading the dataset in memory", "STORE_LOADING"],
    ["NOAUTH Authentication required.", "STORE_UNAUTHENTICATED"],
    ["WRONGPASS invalid username-password pair or user is disabled.", "STORE_UNAUTHENTICATED"],
    ["DENIED Redis is running in protected mode because", "STORE_UNAUTHENTICATED"],
    ["NOPERM this user has no permissions to run the 'evalsha' command", "STORE_ACCESS_DENIED"],
    [`ERR The user executing the script can't run this command ${inScript}`, "STORE_ACCESS_DENIED"],
    ["ERR ACL failure in script: No permissions to access a key", "STORE_ACCESS_DENIED"],
    ["ERR invalid password", "STORE_UNAUTHENTICATED"],
    ["NOSCRIPT No matching script. Please use EVAL.", "STORE_UNAVAILABLE"],
    ["BUSY Redis is busy running a script.", "STORE_UNAVAILABLE"],
    ["MASTERDOWN Link with MASTER is down", "STORE_UNAVAILABLE"],
    ["NOREPLICAS Not enough good replicas to write.", "STORE_TOO_FEW_REPLICAS"],
    [`MISCONF Redis is configured to save RDB snapshots. ${inScript}`, "STORE_NOT_SAVING"],
    ["CLUSTERDOWN The cluster is down", "STORE_UNAVAILABLE"],
    ["TRYAGAIN Multiple keys request during rehashing of slot", "STORE_UNAVAILABLE"],
    ["ERR max number of clients reached", "STORE_TOO_MANY_CLIENTS"],
    ["MOVED 3999 127.0.0.1:6381", "STORE_PROTOCOL"],
    ["ASK 3999 127.0.0.1:6381", "STORE_PROTOCOL"],
    ["CROSSSLOT Keys in request don't hash to the same slot", "STORE_PROTOCOL"],
    ["ERR unknown command 'evalsha'", "STORE_PROTOCOL"],
    ["ERR This instance has cluster support disabled", "STORE_PROTOCOL"],
    ["OOMPH is no word of Redis", "STORE_PROTOCOL"],
  ])("reads a reply's first word: %s", (message, code) => {
    expect(toStoreError(replyError(message)).code).toBe(code);
  });

  it.each([
    ["MOVED 3999 127.0.0.1:6381", { kind: "moved", address: "127.0.0.1:6381" }],
    ["MOVED 3999 :6381", { kind: "moved", address: ":6381" }],
    ["ASK 3999 ::1:6381", { kind: "ask", address: "::1:6381" }],
    ["TRYAGAIN Multiple keys request", { kind: "tryAgain" }],
  ])("reads where a node of a cluster sends us: %s", (message, refusal) => {
    const error = toStoreError(replyError(message));
    expect(error).toBeInstanceOf(SlotRefusal);
    expect(error).toMatchObject(refusal);
    expect(error.message).not.toContain("6381");
  });

  it.each([
    ["a refused connection", Object.assign(new Error("connect"), { code: "ECONNREFUSED" })],
    ["a closed connection", new Error("Connection is closed.")],
    [
      "a flushed command",
      Object.assign(new Error("retries"), { name: "MaxRetriesPerRequestError" }),
    ],
    ["a text that only looks like a reply", new Error("OOM")],
    ["no error at all", "OOM"],
    ["nothing", undefined],
  ])("takes anything else for a lost connection: %s", (_name, error) => {
    expect(toStoreError(error).code).toBe("STORE_UNAVAILABLE");
  });

  it.each([
    ["ECONNREFUSED", "No server listens at the address."],
    ["ENOTFOUND", "host name"],
    ["ETIMEDOUT", "cannot be reached"],
    ["ENOENT", "socket does not exist"],
    ["EACCES", "no permission to open"],
    ["ECONNRESET", "closed the connection"],
    ["EWHATEVER", "The store is unavailable."],
  ])("says what the system found: %s", (code, part) => {
    const error = Object.assign(new Error("connect to hunter2"), { code });
    expect(toStoreError(error)).toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(toStoreError(error).message).toContain(part);
    expect(toStoreError(error).message).not.toContain("hunter2");
  });

  it.each([
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "not signed by a trusted CA"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "not signed by a trusted CA"],
    ["CERT_SIGNATURE_FAILURE", "not signed by a trusted CA"],
    ["CERT_HAS_EXPIRED", "has expired"],
    ["CERT_NOT_YET_VALID", "not valid yet"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "does not contain the configured host name"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "does not use TLS"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires a client certificate"],
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "rejects the client certificate"],
    ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "rejects the client certificate"],
    ["ERR_OSSL_PEM_NO_START_LINE", "Check the port and the certificates."],
    ["EPROTO", "Check the port and the certificates."],
  ])("tells a handshake that failed from other losses: %s", (code, part) => {
    const error = Object.assign(new Error("handshake with hunter2"), { code });
    expect(toStoreError(error)).toMatchObject({ code: "STORE_TLS_FAILED" });
    expect(toStoreError(error).message).toContain(part);
    expect(toStoreError(error).message).not.toContain("hunter2");
  });

  it("hands on what is one of ours already", () => {
    const ours = new ServiceError("STORE_LOADING", "As a sentinel says.");
    expect(toStoreError(ours)).toBe(ours);
  });

  it("keeps nothing of the library's error: no command, no cause, none of its text", () => {
    const error = toStoreError(replyError("WRONGPASS no hunter2 for gate"));
    expect(error.cause).toBeUndefined();
    const reported = [error.message, error.stack, JSON.stringify(error)].join(" ");
    expect(reported).not.toMatch(/hunter2|gate\b/);
  });
});

describe("isLastingRefusal()", () => {
  it.each<[ErrorCode, boolean]>([
    ["STORE_UNAUTHENTICATED", true],
    ["STORE_ACCESS_DENIED", true],
    ["STORE_TLS_FAILED", true],
    ["STORE_UNAVAILABLE", false],
    ["STORE_LOADING", false],
  ])("says of %s: %s", (code, isLasting) => {
    expect(isLastingRefusal(new ServiceError(code))).toBe(isLasting);
  });
});

describe("isNoScriptReply()", () => {
  it("is true for NOSCRIPT alone", () => {
    expect(isNoScriptReply(replyError("NOSCRIPT No matching script."))).toBe(true);
    expect(isNoScriptReply(replyError("ERR NOSCRIPT"))).toBe(false);
    expect(isNoScriptReply("NOSCRIPT ")).toBe(false);
  });
});

describe("isReadOnlyReply()", () => {
  it("is true in a script's error as well", () => {
    expect(isReadOnlyReply(replyError("READONLY You can't write"))).toBe(true);
    expect(isReadOnlyReply(replyError(`${before7}READONLY You can't write`))).toBe(true);
    expect(isReadOnlyReply(replyError("OOM command not allowed"))).toBe(false);
  });
});

describe("isSelectReply()", () => {
  it("is true for the server's answer to SELECT alone", () => {
    const select = Object.assign(replyError("ERR DB index is out of range"), {
      command: { name: "select", args: ["9999"] },
    });
    expect(isSelectReply(select)).toBe(true);
    expect(toStoreError(select).code).toBe("STORE_ACCESS_DENIED");
    expect(isSelectReply(replyError("ERR DB index is out of range"))).toBe(false);
    expect(isSelectReply(new Error("select"))).toBe(false);
    expect(isSelectReply(undefined)).toBe(false);
  });
});
