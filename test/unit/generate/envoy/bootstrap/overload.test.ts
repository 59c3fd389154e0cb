import { describe, expect, it } from "vitest";
import { overload } from "../../../../../src/generate/envoy/bootstrap/overload.js";
import type { OverloadPolicy } from "../../../../../src/policy/proxies/proxy-overload.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

const nothing: OverloadPolicy = {
  refreshMs: 250,
  heap: undefined,
  cpu: undefined,
  cgroupMemory: undefined,
  connectionsMax: undefined,
};
const heap = {
  bytesMax: 536_870_912,
  shrinkAtRatio: 0.85,
  shedFromRatio: 0.9,
  stopAcceptingAtRatio: 0.95,
};
const cpu = { of: "container", shedFromRatio: 0.85, shedAllAtRatio: 0.98 } as const;
const cgroupMemory = { bytesMax: undefined, stopAcceptingAtRatio: 0.95 };

interface Trigger {
  readonly name: string;
}

interface Named {
  readonly name: string;
  readonly triggers: readonly Trigger[];
}

interface Made {
  readonly resource_monitors: readonly Named[];
  readonly loadshed_points?: readonly Named[];
  readonly actions?: readonly Named[];
}

function made(policy: OverloadPolicy, minor = 40) {
  const { context, problems } = testContext({ proxies: { overload: policy }, minor });
  const tree = overload(context);
  expect(apiProblems("envoy.config.overload.v3.OverloadManager", tree)).toEqual([]);
  return { tree: plain(tree) as Made, problems: problems.map(({ id }) => id) };
}

function triggersOf(list: readonly Named[] | undefined, end: string): readonly Trigger[] {
  return list?.find(({ name }) => name.endsWith(`.${end}`))?.triggers ?? [];
}

const shedPoint = "http_connection_manager_decode_headers";

describe("overload()", () => {
  it("shrinks, refuses more and more, and takes nothing more, as the heap fills", () => {
    const { tree, problems } = made({ ...nothing, heap });
    const monitor = "envoy.resource_monitors.fixed_heap";
    expect(tree).toMatchObject({
      refresh_interval: "0.25s",
      resource_monitors: [{ typed_config: { max_heap_size_bytes: 536_870_912 } }],
    });
    expect(triggersOf(tree.actions, "shrink_heap")).toEqual([
      { name: monitor, threshold: { value: 0.85 } },
    ]);
    expect(triggersOf(tree.loadshed_points, shedPoint)).toEqual([
      { name: monitor, scaled: { scaling_threshold: 0.9, saturation_threshold: 0.95 } },
    ]);
    expect(triggersOf(tree.actions, "stop_accepting_requests")).toEqual([
      { name: monitor, threshold: { value: 0.95 } },
    ]);
    expect(triggersOf(tree.actions, "stop_accepting_connections")).toEqual([
      { name: monitor, threshold: { value: 0.975 } },
    ]);
    expect(problems).toEqual([]);
  });

  it("holds all triggers of a point together: Envoy takes each monitor once", () => {
    const { tree } = made({ ...nothing, heap, cpu, cgroupMemory, connectionsMax: 50_000 });
    for (const { triggers } of [...(tree.loadshed_points ?? []), ...(tree.actions ?? [])]) {
      const names = triggers.map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
    }
    expect(triggersOf(tree.loadshed_points, shedPoint)).toHaveLength(2);
    expect(triggersOf(tree.actions, "stop_accepting_requests")).toHaveLength(2);
    const all = [...(tree.loadshed_points ?? []), ...(tree.actions ?? [])];
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    expect(tree.resource_monitors.map(({ name }) => name.split(".").at(-1))).toEqual([
      "fixed_heap",
      "cpu_utilization",
      "cgroup_memory",
      "global_downstream_max_connections",
    ]);
  });

  it("watches only what the policy names", () => {
    expect(made({ ...nothing, connectionsMax: 7 }).tree).toEqual({
      refresh_interval: "0.25s",
      resource_monitors: [expect.objectContaining({ name: expect.stringContaining("max_conn") })],
    });
    const { tree } = made({ ...nothing, cgroupMemory });
    expect(triggersOf(tree.actions, "stop_accepting_requests")).toHaveLength(1);
    expect(tree).not.toHaveProperty("buffer_factory_config");
    // Memory that is only kept must not stop everything.
    expect(triggersOf(tree.actions, "shrink_heap")).toEqual([
      { name: "envoy.resource_monitors.cgroup_memory", threshold: { value: 0.855 } },
    ]);
    expect(made({ ...nothing, cpu }).tree).not.toHaveProperty("actions");
  });

  it("is not there without a policy, or where nothing is watched", () => {
    expect(overload(testContext().context)).toBeUndefined();
    expect(overload(testContext({ proxies: { overload: nothing } }).context)).toBeUndefined();
  });

  it("reports monitors that an older Envoy does not have", () => {
    expect(made({ ...nothing, cpu, cgroupMemory }, 32).problems).toEqual(["HG321", "HG321"]);
    expect(made({ ...nothing, cpu, cgroupMemory }, 35).problems).toEqual([]);
  });
});
