import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import {
  DiscoveryResponseSchema,
  ResourceSchema,
} from "../../../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { RuntimeSchema } from "../../../../src/gen/envoy/service/runtime/v3/rtds_pb.js";
import {
  encodeLayers,
  type LayerAnswer,
  runtimeTypeUrl,
} from "../../../../src/rpc/control/layer-encoder.js";
import type { LayerValue } from "../../../../src/rpc/nodes/layer-ledger.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(20_261_122);

/** A layer of any size, with keys of any length that an Envoy's clusters may make them. */
function randomValues(random: FakeRandom): ReadonlyMap<string, LayerValue> {
  const below = (count: number): number => Math.floor(random.next() * count);
  const values = new Map<string, LayerValue>();
  for (let left = below(12); left > 0; left -= 1) {
    const key = ["k", "åäö 🎈", "outbound|80||orders.shop"][below(3)]?.repeat(1 + below(200)) ?? "";
    const number = [0, 1, 2 ** 32 - 1, 0.5][below(4)] ?? 0;
    values.set(`${key}${left}`, random.next() < 0.3 ? random.next() < 0.5 : number);
  }
  return values;
}

/** The same answer by the library. */
function byLibrary({ nonce, layer, ttlMs, emptyNames }: LayerAnswer): Uint8Array {
  const runtimes = emptyNames.map((name) =>
    anyPack(RuntimeSchema, create(RuntimeSchema, { name, layer: {} })),
  );
  const ttl = { seconds: BigInt(Math.floor(ttlMs / 1_000)), nanos: (ttlMs % 1_000) * 1_000_000 };
  const ours = layer && {
    name: "headgate",
    version: layer.version,
    ttl,
    resource: anyPack(
      RuntimeSchema,
      create(RuntimeSchema, { name: "headgate", layer: Object.fromEntries(layer.values) }),
    ),
  };
  const response = create(DiscoveryResponseSchema, {
    versionInfo: layer?.version ?? "0.0",
    resources: [
      ...(ours === undefined ? [] : [anyPack(ResourceSchema, create(ResourceSchema, ours))]),
      ...runtimes,
    ],
    typeUrl: runtimeTypeUrl,
    nonce,
  });
  return toBinary(DiscoveryResponseSchema, response);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

describe(`encodeLayers(), from seed ${seed}`, () => {
  it("writes what the library writes, byte for byte", () => {
    const random = new FakeRandom(seed);
    const answers = Array.from({ length: seedCount(200) }, (_, i): LayerAnswer => {
      const values = randomValues(random);
      return {
        nonce: `nonce-${i}`,
        layer: random.next() < 0.1 ? undefined : { version: `1.${i}`, values, shares: new Map() },
        ttlMs: Math.floor(random.next() * 20_000) + 1,
        emptyNames: random.next() < 0.2 ? ["other", "åäö 🎈"] : [],
      };
    });
    const encoded = answers.map(encodeLayers);
    // All before any is looked at: what one answer says is not written over by the next.
    for (const [i, answer] of answers.entries()) {
      expect(hex(encoded[i] ?? Buffer.of())).toBe(hex(byLibrary(answer)));
    }
  });

  it("writes a layer without values", () => {
    const layer = { version: "0.0", values: new Map(), shares: new Map() };
    const answer = { nonce: "n", layer, ttlMs: 15_000, emptyNames: [] };
    expect(hex(encodeLayers(answer))).toBe(hex(byLibrary(answer)));
  });
});
