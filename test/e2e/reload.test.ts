import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  edgePolicy,
  type Gateway,
  rateLimitHeaders,
  startHostedGateway,
  statusOf,
} from "../support/gateway.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

function hourlyPolicy(hits: number): string {
  return edgePolicy(`
    - key: account
      rate_limit: {unit: hour, requests_per_unit: ${hits}}
    - key: visitor
      rate_limit: {unit: second, requests_per_unit: 1000000}
  `);
}

const descriptorKeys = [["account"], ["visitor"]];

const stage = useStage("test");

/** How a deployment changes its policy. */
interface Change {
  readonly how: string;
  /** Lays out the first policy and answers its path. */
  readonly begin: (folder: string, text: string) => Promise<string>;
  readonly replace: (folder: string, text: string) => Promise<void>;
}

const byRename: Change = {
  how: "a rename over the file",
  begin: async (folder, text) => {
    const path = join(folder, "policy.yaml");
    await writeFile(path, text);
    return path;
  },
  replace: async (folder, text) => {
    await writeFile(join(folder, "next.yaml"), text);
    await rename(join(folder, "next.yaml"), join(folder, "policy.yaml"));
  },
};

const bySymlinkSwap: Change = {
  how: "a ConfigMap's symlink swap",
  begin: async (folder, text) => {
    await layOut(folder, { version: "..1", text });
    await symlink("..1", join(folder, "..data"));
    await symlink(join("..data", "policy.yaml"), join(folder, "policy.yaml"));
    return join(folder, "policy.yaml");
  },
  replace: async (folder, text) => {
    await layOut(folder, { version: "..2", text });
    await symlink("..2", join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  },
};

async function layOut(
  folder: string,
  { version, text }: { readonly version: string; readonly text: string },
): Promise<void> {
  await mkdir(join(folder, version));
  await writeFile(join(folder, version, "policy.yaml"), text);
}

describe("a policy changed under traffic", () => {
  it.each([byRename, bySymlinkSwap])(
    "by $how takes force without a failed request",
    async (change) => {
      const folder = join(stage.folder, "mounted");
      await mkdir(folder);
      const path = await change.begin(folder, hourlyPolicy(5));
      const gateway = await startHostedGateway(stage, { policy: { path }, descriptorKeys });
      const traffic = Traffic.start(stage, {
        callersCount: 4,
        call: () => statusOf(gateway.send({ visitor: "many" })),
      });
      traffic.pauseBetweenCalls(5);
      for (let count = 0; count < 3; count += 1) await gateway.send({ account: "kept" });
      expect(await remaining(gateway)).toBe(1);

      await change.replace(folder, hourlyPolicy(10));
      await loadedPolicies(gateway.headgates[0], 2);
      // What was used stays used: 4 of 5 before, and 1 now, of 10.
      expect(await remaining(gateway)).toBe(5);

      const before = traffic.counts.total;
      await waitFor("traffic goes on", () => traffic.counts.total >= before + 100);
      const { byOutcome } = await traffic.stop();
      expect(byOutcome).toEqual({ 200: expect.any(Number) });
    },
  );

  it("by a broken file keeps the old policy, and says so until a good one comes", async () => {
    const folder = join(stage.folder, "mounted");
    await mkdir(folder);
    const { begin, replace } = byRename;
    const path = await begin(folder, hourlyPolicy(5));
    const gateway = await startHostedGateway(stage, { policy: { path }, descriptorKeys });
    const [headgate] = gateway.headgates;
    await gateway.send({ account: "kept" });

    await replace(folder, `${hourlyPolicy(10)}  limits: [\n`);
    await waitFor("the broken policy is refused", async () => {
      return (await headgate.metric("headgate_policy_loads_total", { result: "refused" })) === 1;
    });
    const readiness = await headgate.get("/readyz");
    expect(readiness.status).toBe(200);
    expect(JSON.parse(readiness.body)).toMatchObject({
      status: "degraded",
      policy: { lastReloadProblem: expect.stringContaining(`${path}:`) },
    });
    expect(await remaining(gateway)).toBe(3);

    await replace(folder, hourlyPolicy(20));
    await loadedPolicies(headgate, 2);
    expect(JSON.parse((await headgate.get("/readyz")).body)).toMatchObject({ status: "ready" });
    expect(await remaining(gateway)).toBe(17);
  });
});

/** Takes one hit of the account; answers what is left. */
async function remaining(gateway: Gateway<HostedHeadgate>): Promise<number | undefined> {
  return rateLimitHeaders(await gateway.send({ account: "kept" })).remaining;
}

async function loadedPolicies(headgate: HostedHeadgate, count: number): Promise<void> {
  await waitFor(`${count} policies were loaded`, async () => {
    return (await headgate.metric("headgate_policy_loads_total", { result: "loaded" })) === count;
  });
}
