import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type LoadStatsRequest,
  LoadStatsRequestSchema,
} from "../../../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import { decodeLoads, type LoadMessage } from "../../../../src/rpc/nodes/load-message.js";
import { testNode } from "../../../support/control-rig.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { plainNode } from "../../../support/plain-node.js";
import { firstSeed, metCount, seedCount } from "../../../support/seeds.js";

const seed = firstSeed(20_261_122);

/** The same from the library's message. */
function plain({ node, clusterStats }: LoadStatsRequest): LoadMessage {
  const sum = (numbers: readonly bigint[]): number =>
    numbers.reduce((total, one) => total + Number(one), 0);
  return {
    node: node && plainNode(node),
    loads: clusterStats.map(({ upstreamLocalityStats: localities, ...stats }) => ({
      cluster: stats.clusterName,
      inFlight: sum(localities.map((one) => one.totalRequestsInProgress)),
      successCount: sum(localities.map((one) => one.totalSuccessfulRequests)),
      errorCount: sum(localities.map((one) => one.totalErrorRequests)),
      dropCount: Number(stats.totalDroppedRequests),
      coveredMs:
        Number(stats.loadReportInterval?.seconds ?? 0) * 1_000 +
        (stats.loadReportInterval?.nanos ?? 0) / 1_000_000,
    })),
  };
}

/** Reports of all shapes that Envoy sends, and of some that it does not. */
class ReportSource {
  readonly #random: FakeRandom;

  constructor(random: FakeRandom) {
    this.#random = random;
  }

  next(): MessageInitShape<typeof LoadStatsRequestSchema> {
    const report = { clusterStats: this.#some(() => this.#stats()) };
    return this.#below(3) === 0 ? report : { ...report, node: this.#node() };
  }

  #node() {
    const text = { case: "userAgentVersion" as const, value: "x".repeat(this.#below(400)) };
    const build = testNode(`edge-${this.#below(10)}`, [this.#below(200), this.#below(2)]);
    const extensions = this.#some(() => ({ name: "a.b", category: "c", typeUrls: ["d"] }));
    return {
      ...build,
      extensions,
      ...(this.#below(3) === 0 ? { userAgentVersionType: text } : {}),
    };
  }

  #stats() {
    const interval = { seconds: BigInt(this.#below(5)), nanos: this.#below(1e9) };
    return {
      clusterName: `outbound|80||åäö-${this.#below(5)}`,
      clusterServiceName: "other",
      totalDroppedRequests: this.#whole(),
      droppedRequests: this.#some(() => ({ category: "c", droppedCount: 3n })),
      upstreamLocalityStats: this.#some(() => ({
        locality: { region: "here" },
        totalSuccessfulRequests: this.#whole(),
        totalRequestsInProgress: this.#whole(),
        totalErrorRequests: this.#whole(),
        totalIssuedRequests: this.#whole(),
        loadMetricStats: this.#some(() => ({ metricName: "m", totalMetricValue: 0.5 })),
      })),
      ...(this.#below(4) === 0 ? {} : { loadReportInterval: interval }),
    };
  }

  #some<T>(make: () => T): T[] {
    return Array.from({ length: this.#below(4) }, make);
  }

  #whole(): bigint {
    return BigInt(Math.floor(2 ** (this.#random.next() * 50)));
  }

  #below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }
}

describe(`decodeLoads(), from seed ${seed}`, () => {
  it("reads what the library reads", () => {
    const source = new ReportSource(new FakeRandom(seed));
    for (let i = 0; i < seedCount(300); i += 1) {
      const bytes = toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, source.next()));
      const report = fromBinary(LoadStatsRequestSchema, bytes);
      expect(decodeLoads(bytes), Buffer.from(bytes).toString("hex")).toEqual(plain(report));
    }
  });

  it("throws, or reads what is there, of reports that are cut or damaged", () => {
    const random = new FakeRandom(seed);
    const source = new ReportSource(random);
    let thrownCount = 0;
    for (let i = 0; i < seedCount(300); i += 1) {
      const bytes = toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, source.next()));
      const cut = bytes.slice(0, Math.floor(random.next() * bytes.length));
      const at = Math.floor(random.next() * cut.length);
      cut[at] = Math.floor(random.next() * 256);
      try {
        decodeLoads(cut);
      } catch (thrown) {
        expect(String(thrown)).toContain("the bytes are not a message");
        thrownCount += 1;
      }
    }
    expect(thrownCount).toBeGreaterThan(metCount(75));
  });

  it("takes a time below nothing for none", () => {
    const init = { clusterStats: [{ loadReportInterval: { seconds: -1n, nanos: 5 } }] };
    const bytes = toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, init));
    expect(decodeLoads(bytes).loads).toMatchObject([{ coveredMs: 0 }]);
  });
});
