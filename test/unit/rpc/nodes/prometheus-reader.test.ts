import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import {
  type MetricFamily,
  MetricFamilySchema,
} from "../../../../src/gen/io/prometheus/client/metrics_pb.js";
import { FieldReader, fieldTag } from "../../../../src/rpc/codec/field-reader.js";
import { type RawMetric, readMetric } from "../../../../src/rpc/nodes/prometheus-reader.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { firstSeed, metCount, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(20_251_121);

function readByHand(bytes: Uint8Array): readonly RawMetric[] {
  const metrics: RawMetric[] = [];
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.tag === fieldTag(4, WireType.LengthDelimited)) metrics.push(readMetric(reader));
    else reader.skip();
  }
  return metrics;
}

/** The same from the library's messages. */
function plain({ metric }: MetricFamily): readonly RawMetric[] {
  return metric.map(({ label, gauge, counter, summary, histogram, timestampMs }) => ({
    labels: label.map(({ name, value }) => ({ name, value })),
    gauge: gauge?.value,
    counter: counter?.value,
    summary: summary && {
      count: Number(summary.sampleCount),
      sum: summary.sampleSum,
      quantiles: summary.quantile.map(({ quantile: at, value }) => ({ at, value })),
    },
    histogram: histogram && {
      count: Number(histogram.sampleCount),
      sum: histogram.sampleSum,
      buckets: histogram.bucket.map(({ upperBound: upTo, cumulativeCount }) => {
        return { upTo, count: Number(cumulativeCount) };
      }),
    },
    timestampMs: Number(timestampMs),
  }));
}

/** Families of all shapes that Envoy sends, and of some that it does not. */
class FamilySource {
  readonly #random: FakeRandom;

  constructor(random: FakeRandom) {
    this.#random = random;
  }

  next(): MessageInitShape<typeof MetricFamilySchema> {
    return { name: this.#text(), help: this.#text(), metric: this.#some(() => this.#metric()) };
  }

  #metric() {
    const chosen = this.#below(6);
    const sampleCount = BigInt(this.#whole());
    const sampleSum = this.#double();
    return {
      label: this.#some(() => ({ name: this.#text(), value: this.#text() })),
      timestampMs: BigInt(this.#whole()),
      ...(chosen === 0 ? { gauge: { value: this.#double() } } : {}),
      ...(chosen === 1 ? { counter: { value: this.#double(), exemplar: {} } } : {}),
      ...(chosen === 2 ? { untyped: { value: this.#double() } } : {}),
      ...(chosen === 3
        ? { summary: { sampleCount, sampleSum, quantile: this.#some(() => this.#quantile()) } }
        : {}),
      ...(chosen === 4
        ? { histogram: { sampleCount, sampleSum, bucket: this.#some(() => this.#bucket()) } }
        : {}),
    };
  }

  #quantile() {
    return { quantile: this.#double(), value: this.#double() };
  }

  #bucket() {
    return { upperBound: this.#double(), cumulativeCount: BigInt(this.#whole()) };
  }

  #some<T>(make: () => T): T[] {
    return Array.from({ length: this.#below(4) }, make);
  }

  #text(): string {
    return ["", "name", "cluster.a|b.c", "åäö 🎈", "x".repeat(200)][this.#below(5)] ?? "";
  }

  #whole(): number {
    return Math.floor(2 ** (this.#random.next() * 53));
  }

  #double(): number {
    const odd = [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e300];
    return odd[this.#below(8)] ?? this.#random.next() * 1_000;
  }

  #below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }
}

describe(`readMetric(), from seed ${seed}`, () => {
  it("reads what the library reads", () => {
    const source = new FamilySource(new FakeRandom(seed));
    for (let i = 0; i < seedCount(300); i += 1) {
      const bytes = toBinary(MetricFamilySchema, create(MetricFamilySchema, source.next()));
      const family = fromBinary(MetricFamilySchema, bytes);
      expect(readByHand(bytes), Buffer.from(bytes).toString("hex")).toEqual(plain(family));
    }
  });

  it("throws, or reads what is there, of messages that are cut or damaged", () => {
    const random = new FakeRandom(seed);
    const source = new FamilySource(random);
    let thrownCount = 0;
    for (let i = 0; i < seedCount(300); i += 1) {
      const bytes = toBinary(MetricFamilySchema, create(MetricFamilySchema, source.next()));
      const cut = bytes.slice(0, Math.floor(random.next() * bytes.length));
      const at = Math.floor(random.next() * cut.length);
      cut[at] = Math.floor(random.next() * 256);
      try {
        readByHand(cut);
      } catch (thrown) {
        expect(String(thrown)).toContain("the bytes are not a message");
        thrownCount += 1;
      }
    }
    expect(thrownCount).toBeGreaterThan(metCount(75));
  });
});
