import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MetricFamilySchema } from "../../../../src/gen/io/prometheus/client/metrics_pb.js";
import { FieldReader } from "../../../../src/rpc/codec/field-reader.js";
import { familyTags, PlainFamily } from "../../../../src/rpc/nodes/plain-family.js";
import { type RawMetric, readStatistic } from "../../../../src/rpc/nodes/prometheus-reader.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed, metCount, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(20_251_128);

const name = "cluster.orders.upstream_rq_time";
const nameEnd = 2 + name.length;

const quantiles = [0, 0.25, 0.5, 0.75, 0.9, 1];

/** Families as Envoy writes them, and some with what it leaves out. */
function familyOf(random: FakeRandom): Buffer {
  const below = (count: number): number => Math.floor(random.next() * count);
  const value = [0, -1, Number.NaN, 2 ** 60][below(8)] ?? random.next() * 1_000;
  const kind = below(5);
  const label = below(8) === 0 ? [{ name: "a", value: "b" }] : [];
  const epochMs =
    [0, 1, 2 ** 34, 2 ** 42 - 1, 2 ** 42][below(10)] ?? 1_764_000_000_000 + below(9e6);
  const summary = {
    sampleCount: BigInt(below(2 ** (1 + below(31)))),
    sampleSum: value,
    quantile: quantiles.slice(below(6)).map((quantile) => ({ quantile, value: below(100) })),
  };
  const metric = {
    ...{ label, timestampMs: BigInt(epochMs) },
    ...(kind < 2 ? { gauge: { value } } : {}),
    ...(kind === 2 ? { counter: { value } } : {}),
    ...(kind > 2 ? { summary } : {}),
  };
  const metrics = Array.from({ length: below(8) === 0 ? below(3) : 1 }, () => metric);
  const family = create(MetricFamilySchema, { name, type: kind, metric: metrics });
  return Buffer.from(toBinary(MetricFamilySchema, family));
}

/** The last of its metrics, where there is just one. */
function readAny(bytes: Buffer): RawMetric | undefined {
  const metrics: RawMetric[] = [];
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.tag === familyTags.metric) metrics.push(readStatistic(reader));
    else reader.skip();
  }
  return metrics.length === 1 ? metrics[0] : undefined;
}

describe(`PlainFamily, from seed ${seed}`, () => {
  const plain = new PlainFamily();

  function read(family: Buffer): RawMetric | undefined {
    // Among other bytes, as in a message.
    const bytes = Buffer.concat([Buffer.from("before"), family, Buffer.from("after")]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return plain.read(view, 6 + nameEnd, 6 + family.length);
  }

  it("reads what the general reader reads, or leaves it to that one", () => {
    const random = new FakeRandom(seed);
    let readCount = 0;
    for (let i = 0; i < seedCount(2_000); i += 1) {
      const family = familyOf(random);
      const found = read(family);
      if (found === undefined) continue;
      readCount += 1;
      expect(found, family.toString("hex")).toEqual(readAny(family));
    }
    expect(readCount).toBeGreaterThan(metCount(1_000));
  });

  it("does so for families that are cut or damaged, too", () => {
    const random = new FakeRandom(seed);
    for (let i = 0; i < seedCount(4_000); i += 1) {
      const family = familyOf(random);
      const cut = family.subarray(0, random.next() < 0.5 ? undefined : -1 - 9 * random.next());
      const at = nameEnd + Math.floor(random.next() * (cut.length - nameEnd));
      if (at < cut.length) cut[at] = Math.floor(random.next() * 256);
      const found = cut.length < nameEnd ? undefined : read(cut);
      if (found !== undefined) expect(found, cut.toString("hex")).toEqual(readAny(cut));
    }
  });
});
