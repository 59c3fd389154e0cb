import { describe, expect, it } from "vitest";
import {
  encodeGrpcMessage,
  failureAnswer,
  failureMessageMax,
  failureTrailers,
} from "../../../../src/wire/grpc/grpc-status.js";

describe("encodeGrpcMessage()", () => {
  it.each([
    { text: "", encoded: "" },
    { text: "plain ~ text!", encoded: "plain ~ text!" },
    { text: "50 % ü", encoded: "50 %25 %C3%BC" },
    { text: "a\r\nb\u0000", encoded: "a%0D%0Ab%00" },
    { text: "\u{1F600}", encoded: "%F0%9F%98%80" },
    { text: "\u007f", encoded: "%7F" },
    // Half of a pair is no character: it becomes the sign that stands for none.
    { text: "\ud83d", encoded: "%EF%BF%BD" },
  ])("sends $text as $encoded", ({ text, encoded }) => {
    expect(encodeGrpcMessage(text)).toBe(encoded);
  });

  it(`cuts a text after ${failureMessageMax} characters`, () => {
    expect(encodeGrpcMessage("a".repeat(failureMessageMax))).toHaveLength(failureMessageMax);
    expect(encodeGrpcMessage("a".repeat(failureMessageMax + 1))).toHaveLength(failureMessageMax);
  });
});

describe("failureAnswer()", () => {
  it("is a whole answer: HTTP's status, the type, and the trailers of a failure", () => {
    const failure = { grpcStatus: 14, message: "Away." };
    expect(failureAnswer(failure)).toEqual([
      [":status", "200"],
      ["content-type", "application/grpc+proto"],
      ["grpc-accept-encoding", "identity"],
      ...failureTrailers(failure),
    ]);
    expect(failureTrailers(failure)).toEqual([
      ["grpc-status", "14"],
      ["grpc-message", "Away."],
    ]);
  });
});
