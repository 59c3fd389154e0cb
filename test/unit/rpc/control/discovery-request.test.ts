import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as discovery from "../../../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import {
  askTextBytesMax,
  type DiscoveryAsk,
  decodeDiscoveryAsk,
  resourceNamesMax,
} from "../../../../src/rpc/control/discovery-request.js";
import { anyCodePoint } from "../../../support/any-code-point.js";
import { plainNode } from "../../../support/plain-node.js";
import { rawField } from "../../../support/raw-field.js";
import { propertyRuns } from "../../../support/seeds.js";

const { DiscoveryRequestSchema } = discovery;

type Shape = MessageInitShape<typeof DiscoveryRequestSchema>;

function encode(shape: Shape): Uint8Array {
  return toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, shape));
}

/** The same from the library's message. */
function plain(bytes: Uint8Array): DiscoveryAsk {
  const request = fromBinary(DiscoveryRequestSchema, bytes);
  const { node, typeUrl, versionInfo, resourceNames, responseNonce, errorDetail } = request;
  return {
    node: node && plainNode(node),
    typeUrl,
    versionInfo,
    resourceNames,
    responseNonce,
    refusal: errorDetail?.message,
  };
}

const text = fc.string({ unit: anyCodePoint, maxLength: 12 });
const version = fc.oneof(
  fc.record({ case: fc.constant("userAgentVersion" as const), value: text }),
  fc
    .record({ majorNumber: fc.nat(9), minorNumber: fc.nat(99), patch: fc.nat(9) })
    .map((one) => ({ case: "userAgentBuildVersion" as const, value: { version: one } })),
);
const node = fc.record({
  id: text,
  cluster: fc.oneof(text, fc.string({ minLength: 250, maxLength: 300 })),
  userAgentName: text,
  userAgentVersionType: version,
  extensions: fc.array(fc.record({ name: text, category: text }), { maxLength: 4 }),
});
const requests = fc.record(
  {
    node,
    typeUrl: text,
    versionInfo: text,
    resourceNames: fc.array(text, { maxLength: 4 }),
    responseNonce: text,
    errorDetail: fc.record({ code: fc.nat(16), message: text }),
  },
  { requiredKeys: [] },
);

describe("decodeDiscoveryAsk()", () => {
  it("reads what the general decoder reads", () => {
    fc.assert(
      fc.property(requests, (shape) => {
        const bytes = encode(shape);
        expect(decodeDiscoveryAsk(bytes)).toEqual(plain(bytes));
      }),
      propertyRuns(200),
    );
  });

  it("refuses a node of millions of extensions before it makes anything of them", () => {
    const extensions = Buffer.alloc(4_000_000, Buffer.of(0x4a, 0));
    expect(() => decodeDiscoveryAsk(rawField(0x12, extensions))).toThrow("too many fields");
  });

  it("reads so many names, and passes over the others", () => {
    const resourceNames = Array.from({ length: resourceNamesMax + 5 }, (_, i) => `layer-${i}`);
    const asked = decodeDiscoveryAsk(encode({ resourceNames, typeUrl: "t" }));
    expect(asked.resourceNames).toEqual(resourceNames.slice(0, resourceNamesMax));
    expect(asked.typeUrl).toBe("t");
  });

  it("reads no more of a text than any name has, since some are kept", () => {
    const long = "n".repeat(4_096);
    const error = { message: long };
    const { typeUrl, refusal, resourceNames } = decodeDiscoveryAsk(
      encode({ typeUrl: long, resourceNames: [long], errorDetail: error }),
    );
    for (const text of [typeUrl, refusal, ...resourceNames]) {
      expect(text).toBe("n".repeat(askTextBytesMax));
    }
  });

  it("throws for what is no message", () => {
    expect(() => decodeDiscoveryAsk(Buffer.of(0x12, 5, 1))).toThrow();
  });
});
