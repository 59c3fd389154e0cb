import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import * as strategies from "../../src/gen/envoy/type/v3/ratelimit_strategy_pb.js";
import { TokenBucketSchema } from "../../src/gen/envoy/type/v3/token_bucket_pb.js";
import { Envoy } from "../support/envoy.js";
import { controlCluster, QuotaTraffic, quotaFilter } from "../support/quota-fleet.js";
import { startQuotaServer } from "../support/quota-server.js";
import { useStage } from "../support/stage.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const { RateLimitStrategySchema, RateLimitStrategy_BlanketRule: BlanketRule } = strategies;

type Strategy = NonNullable<MessageInitShape<typeof RateLimitStrategySchema>["strategy"]>;

/** Next to nothing comes in while a test looks. */
const slowSeconds = 3_600;

function bucketOf(maxTokens: number, fillSeconds = slowSeconds): Strategy {
  const fillInterval = create(DurationSchema, { seconds: BigInt(fillSeconds) });
  const value = create(TokenBucketSchema, { maxTokens, tokensPerFill: 1, fillInterval });
  return { case: "tokenBucket", value };
}

const denial: Strategy = { case: "blanketRule", value: BlanketRule.DENY_ALL };

describe("what the quotas' ledger counts on of an Envoy", () => {
  it("keeps in a changed bucket what was left, and fills one that follows a denial", async () => {
    // Each is answered to one report: what the next one says is what that let in.
    const steps = [
      { told: bucketOf(20), most: 20 },
      { told: bucketOf(30), most: 0 },
      { told: bucketOf(30, slowSeconds / 2), most: 0 },
      { told: bucketOf(5), most: 0 },
      { told: denial, most: 0 },
      { told: bucketOf(30), most: 30 },
    ];
    const upstream = await startUpstream(stage);
    const server = await startQuotaServer(stage);
    let stepCount = 0;
    server.answer = ({ id }) => {
      const step = steps[stepCount];
      stepCount += 1;
      if (step === undefined) return undefined;
      const rateLimitStrategy = { strategy: step.told };
      const assignment = { assignmentTimeToLive: { seconds: 600n }, rateLimitStrategy };
      const bucketAction = { case: "quotaAssignmentAction", value: assignment } as const;
      return [{ bucketId: { bucket: { ...id } }, bucketAction }];
    };
    const filter = { domain: "shop", quota: "tenants", keys: ["tenant"], node: "edge-1" };
    const envoy = await Envoy.start(stage, {
      upstreamPort: upstream.port,
      headgatePorts: [],
      rateLimits: [],
      filtersBefore: [quotaFilter({ ...filter, settings: denyUntilTold })],
      moreClusters: [controlCluster([server.port])],
    });
    const traffic = QuotaTraffic.start(stage, { port: envoy.port, headers: { "x-tenant": "a" } });
    traffic.pace(50);
    await waitFor("all steps were taken", () => server.reports.length > steps.length, {
      withinMs: 60_000,
    });
    const passed = server.reports.slice(1).map(({ allowedCount }) => allowedCount);
    expect(passed).toEqual(steps.map(({ most }) => most));
    expect(server.reports[0]?.allowedCount).toBe(0);
    expect(traffic.failedCount).toBe(0);
  });
});

/** So that nothing passes but by what the server says. */
const denyUntilTold = {
  no_assignment_behavior: { fallback_rate_limit: { blanket_rule: "DENY_ALL" } },
};
