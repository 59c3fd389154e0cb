import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { quotaReportMs } from "../../src/core/quota/quota.js";
import * as strategies from "../../src/gen/envoy/type/v3/ratelimit_strategy_pb.js";
import { TokenBucketSchema } from "../../src/gen/envoy/type/v3/token_bucket_pb.js";
import { Envoy } from "../support/envoy.js";
import { HttpClient } from "../support/http-client.js";
import { controlCluster, quotaFilter } from "../support/quota-fleet.js";
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
const allowance: Strategy = { case: "blanketRule", value: BlanketRule.ALLOW_ALL };

/** What the tenant `a` is told, one after the other, and how many requests that lets pass. */
const steps: readonly { readonly reported: Strategy; readonly most: number }[] = [
  { reported: bucketOf(20), most: 20 },
  { reported: bucketOf(20), most: 0 },
  { reported: bucketOf(30), most: 0 },
  { reported: bucketOf(30, slowSeconds / 2), most: 0 },
  { reported: bucketOf(5), most: 0 },
  { reported: denial, most: 0 },
  { reported: bucketOf(30), most: 30 },
];

/** More than any of them lets pass. */
const requestsPerStep = 40;

describe("what the quotas' ledger counts on of an Envoy", () => {
  it("keeps in a changed bucket what was left, and fills one that follows a denial", async () => {
    const upstream = await startUpstream(stage);
    const server = await startQuotaServer(stage);
    // A new bucket is reported at once. So the first request of a tenant that is called after a
    // step brings the step's assignment; one message tells both, and Envoy takes both in at once.
    server.answer = ({ id }) => {
      const step = steps[Number(id["tenant"])];
      if (step === undefined) return undefined;
      return [assignment({ ...id, tenant: "a" }, step.reported), assignment(id, allowance)];
    };
    const filter = { domain: "shop", quota: "tenants", keys: ["tenant"], node: "edge-1" };
    const envoy = await Envoy.start(stage, {
      upstreamPort: upstream.port,
      headgatePorts: [],
      rateLimits: [],
      filtersBefore: [quotaFilter({ ...filter, settings: denyUntilReported })],
      moreClusters: [controlCluster([server.port])],
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const passes = async (tenant: string): Promise<boolean> =>
      (await http.send({ port: envoy.port, headers: { "x-tenant": tenant } })).status === 200;

    expect(await passes("a")).toBe(false);
    await waitFor("it has a bucket", () => server.reports.length === 1);
    for (const [i, { most }] of steps.entries()) {
      await waitFor(`step ${i} is taken`, () => passes(String(i)));
      const all = Array.from({ length: requestsPerStep }, () => passes("a"));
      const passed = (await Promise.all(all)).filter((is) => is);
      expect(passed.length, `step ${i}`).toBe(most);
    }
    const askedCount = 1 + steps.length * requestsPerStep;
    const passedCount = steps.reduce((all, { most }) => all + most, 0);
    await waitFor(
      "it reports what has passed, and what was refused",
      () => {
        const own = server.reports.filter(({ id }) => id["tenant"] === "a");
        const allowed = own.reduce((all, { allowedCount }) => all + allowedCount, 0);
        const denied = own.reduce((all, { deniedCount }) => all + deniedCount, 0);
        return allowed === passedCount && denied === askedCount - passedCount;
      },
      { withinMs: 2 * quotaReportMs },
    );
  });
});

function assignment(bucket: Readonly<Record<string, string>>, strategy: Strategy) {
  const rateLimitStrategy = { strategy };
  const value = { assignmentTimeToLive: { seconds: 600n }, rateLimitStrategy };
  const bucketAction = { case: "quotaAssignmentAction", value } as const;
  return { bucketId: { bucket: { ...bucket } }, bucketAction };
}

/** So that nothing passes but by what the server says. */
const denyUntilReported = {
  no_assignment_behavior: { fallback_rate_limit: { blanket_rule: "DENY_ALL" } },
};
