import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/app/config.js";
import { findTransportProblem } from "../../../src/app/transport-choice.js";

describe("findTransportProblem()", () => {
  it.each([
    { transport: "grpc-js", reflection: false },
    { transport: "grpc-js", reflection: true },
    { transport: "lane", reflection: false },
  ] as const)("lets $transport with reflection $reflection be", (values) => {
    expect(findTransportProblem(values)).toBeUndefined();
  });

  it("says what to change where the lane would have to serve reflection", () => {
    const env = { HEADGATE_TRANSPORT: "lane", HEADGATE_REFLECTION: "true", HEADGATE_POLICY: "p" };
    expect(loadConfig({ flags: {}, env })).toEqual({
      kind: "problems",
      problems: [expect.stringMatching(/^HEADGATE_REFLECTION needs HEADGATE_TRANSPORT=grpc-js/)],
    });
  });
});
