import { describe, expect, it } from "vitest";
import { startGateway } from "../support/gateway.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function policyOf(hits: number): string {
  return `domain: edge
descriptors:
  - key: account
    rate_limit: {unit: hour, requests_per_unit: ${hits}}
`;
}

type Answer = Readonly<Record<string, unknown>>;

/** Asks the admin API of a Headgate, as JSON over HTTP. */
async function ask(
  http: HttpClient,
  headgate: HeadgateProcess,
  { method, message }: { readonly method: string; readonly message: object },
): Promise<Answer> {
  const port = /"adminListening".*?"port":(\d+)/.exec(headgate.process.output)?.[1];
  const { status, body } = await http.send({
    port: Number(port),
    path: `/headgate.admin.v1.PolicyService/${method}`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(message),
  });
  if (status !== 200) throw new Error(`${method} answers ${status}: ${body}`);
  return JSON.parse(body) as Answer;
}

describe("a policy that is tried beside the active one", () => {
  it("reports whom it would refuse while nobody notices, is enforced, and taken back", async () => {
    const redis = await startRedis(stage);
    const env = {
      ...redisEnv(redis.port),
      HEADGATE_POLICY_SOURCE: "store",
      HEADGATE_ADMIN_OPEN: "true",
    };
    const gateway = await startGateway(stage, {
      policy: policyOf(1_000),
      descriptorKeys: [["account"]],
      headgateEnvs: [env, env],
    });
    const [first, second] = gateway.headgates as readonly [HeadgateProcess, HeadgateProcess];
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const call = (headgate: HeadgateProcess, method: string, message: object): Promise<Answer> =>
      ask(http, headgate, { method, message });
    const current = async (headgate: HeadgateProcess): Promise<string> =>
      ((await call(headgate, "GetPolicy", {}))["policy"] as { version: string }).version;
    const send = async (account: string): Promise<number> =>
      (await gateway.send({ account })).status;

    const files = [{ file: "policy.yaml", text: policyOf(5) }];
    const before = await current(first);
    const asked = { expectedVersion: before, reason: "too many" };
    await call(first, "ApplyPolicy", { files, shadow: true, ...asked });
    await waitFor("both run it", async () => {
      const reports = [first, second].map((one) => call(one, "GetShadowReport", {}));
      return (await Promise.all(reports)).length === 2;
    });
    // The first call is waited for: two first ones at a time would each count the other as used.
    expect(await send("ann")).toBe(200);
    await waitFor("the first call is compared", async () => {
      return (await call(first, "GetShadowReport", {}))["callCount"] === "1";
    });
    for (let i = 1; i < 30; i += 1) expect(await send("ann")).toBe(200);
    // Both Headgates were asked, and each knows what both have counted.
    for (const headgate of [first, second]) {
      await waitFor("the report has all calls", async () => {
        const { rules } = await call(headgate, "GetShadowReport", {});
        const [rule] = rules as readonly Answer[];
        return rule?.["newlyDeniedCount"] === "25" && rule["sameCount"] === "5";
      });
    }
    expect(await first.metric("headgate_shadow_calls_total")).toBeGreaterThan(0);

    await call(first, "EnforcePolicy", asked);
    const shadowed = await current(first);
    expect(shadowed).not.toBe(before);
    await waitFor("it is active on both", async () => (await current(second)) === shadowed);
    // What had passed counts on: 30 of 5 are used.
    await waitFor("its caller is refused", async () => (await send("ann")) === 429);
    for (let i = 0; i < 4; i += 1) expect(await send("ann")).toBe(429);

    second.process.signal("SIGKILL");
    await second.process.exited;
    await second.restart();
    expect(await current(second)).toBe(shadowed);

    await call(second, "RollBackPolicy", { expectedVersion: shadowed, reason: "too few" });
    await waitFor("both are back", async () => (await current(first)) === before);
    await waitFor("its caller passes", async () => (await send("ann")) === 200);
    expect(await current(second)).toBe(before);
  });
});
