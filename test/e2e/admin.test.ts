import { describe, expect, it } from "vitest";
import { type AdminClients, adminClients } from "../support/admin.js";
import { edgePolicy, startHostedGateway } from "../support/gateway.js";
import { HeadgateProcess, type RunningHeadgate } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 3, overrideMax: 100000}
`);

/** How soon all replicas go by what one was told, in milliseconds. */
const everywhereMsMax = 1_000;

function clientsOf(headgate: RunningHeadgate): AdminClients {
  return adminClients(headgate.portOf("admin"));
}

const acme = { domain: "edge", entries: [{ key: "account", value: "acme" }] };

describe("the admin API of two Headgates on one Redis", () => {
  it("changes through one what callers see through the other, and forgets nothing", async () => {
    const { port } = await startRedis(stage);
    const env = { ...redisEnv(port), HEADGATE_ADMIN_OPEN: "true" };
    const [first, gateway] = await Promise.all([
      HeadgateProcess.start(stage, { policy, env }),
      startHostedGateway(stage, { policy, headgateEnvs: [env], descriptorKeys: [["account"]] }),
    ]);
    const [second] = gateway.headgates;
    const send = async (account: string): Promise<number> =>
      (await gateway.send({ account })).status;
    const until = async (account: string, status: number): Promise<number> => {
      const startMs = performance.now();
      await waitFor(`${account} gets ${status}`, async () => (await send(account)) === status);
      return performance.now() - startMs;
    };
    const { limits } = clientsOf(first);
    for (let i = 0; i < 3; i += 1) expect(await send("acme")).toBe(200);
    expect(await send("acme")).toBe(429);
    const more = { ...acme, id: "acme", effect: { case: "multiplier", value: 100_000 } as const };
    const { override } = await limits.setOverride({ override: { ...more, reason: "a contract" } });
    expect(await until("acme", 200)).toBeLessThan(everywhereMsMax);
    const expectedVersion = override?.version ?? 0n;
    const frozen = { ...acme, id: "acme", effect: { case: "isFrozen", value: true } as const };
    await limits.setOverride({ override: { ...frozen, reason: "abuse" }, expectedVersion });
    expect(await until("acme", 429)).toBeLessThan(everywhereMsMax);
    expect(await send("other")).toBe(200);
    const { states } = await clientsOf(second).limits.getKey({ key: acme });
    expect(states[0]?.limit?.hits).toBe(0n);
    expect(states[0]?.override?.reason).toBe("abuse");
    // What was answered was written: no end of a process takes it away.
    await first.process.kill();
    await first.restart();
    const said = await clientsOf(first).fleet.listAudit({});
    expect(said.entries.map(({ action, reason }) => [action, reason])).toEqual([
      ["SetOverride", "abuse"],
      ["SetOverride", "a contract"],
    ]);
    expect(JSON.parse(said.entries[0]?.before ?? "")).toMatchObject({ effect: { by: 100_000 } });
    expect(await send("acme")).toBe(429);
  });

  it("is not opened to a network without credentials", async () => {
    const env = { HEADGATE_ADMIN_ADDR: "0.0.0.0:0" };
    const { code, output } = await HostedHeadgate.startFailure(stage, { policy, env });
    expect(code).toBe(2);
    expect(output).toContain("HEADGATE_ADMIN_ACCESS is not set");
    expect(output).toContain("set it to an access list, or listen on 127.0.0.1");
  });
});
