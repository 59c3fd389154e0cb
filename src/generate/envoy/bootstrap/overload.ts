import type {
  CgroupOverload,
  HeapOverload,
  OverloadPolicy,
} from "../../../policy/proxies/proxy-overload.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { type EnvoyFeature, hasFeature, reportOld } from "../base/envoy-features.js";
import { durationText, extension, typed } from "../base/values.js";

/** Names of Envoy's resource monitors. */
const monitors = {
  heap: "envoy.resource_monitors.fixed_heap",
  cpu: "envoy.resource_monitors.cpu_utilization",
  cgroup: "envoy.resource_monitors.cgroup_memory",
  connections: "envoy.resource_monitors.global_downstream_max_connections",
} as const;

/**
 * Streams whose buffers hold less than 2 to the power of this are not tracked: 64 KiB, twice the
 * buffer of a connection in generated listeners.
 */
const trackedBytesPower = 16;

/**
 * Returns the bootstrap's `overload_manager`, which protects the process itself. Undefined if the
 * policy has none.
 *
 * Source: envoy.config.overload.v3.OverloadManager.
 */
export function overload(context: EnvoyContext): TreeMap | undefined {
  const policy = context.policy.proxies.overload;
  if (policy === undefined) return undefined;
  const monitored = resourceMonitors(policy, context);
  if (monitored.length === 0) return undefined;
  const points = loadShedPoints(policy);
  const acts = actions(policy);
  return {
    refresh_interval: durationText(policy.refreshMs),
    buffer_factory_config: policy.heap && {
      minimum_account_to_track_power_of_two: trackedBytesPower,
    },
    resource_monitors: monitored,
    loadshed_points: points.length === 0 ? undefined : points,
    actions: acts.length === 0 ? undefined : acts,
  };
}

function resourceMonitors(policy: OverloadPolicy, context: EnvoyContext): readonly Tree[] {
  const { heap, cpu, cgroupMemory, connectionsMax } = policy;
  const found: Tree[] = [];
  if (heap !== undefined) {
    const fields = { max_heap_size_bytes: heap.bytesMax };
    found.push(extension(monitors.heap, configOf("fixed_heap", "FixedHeapConfig"), fields));
  }
  if (cpu !== undefined) {
    needs(context, { feature: "cpuMonitor", name: "cpu", what: "a monitor of the CPU" });
    const fields = { mode: cpu.of === "host" ? "HOST" : "CONTAINER" };
    found.push(
      extension(monitors.cpu, configOf("cpu_utilization", "CpuUtilizationConfig"), fields),
    );
  }
  if (cgroupMemory !== undefined) {
    const what = "a monitor of a control group's memory";
    needs(context, { feature: "cgroupMonitor", name: "cgroupMemory", what });
    const fields = { max_memory_bytes: cgroupMemory.bytesMax };
    found.push(extension(monitors.cgroup, configOf("cgroup_memory", "CgroupMemoryConfig"), fields));
  }
  if (connectionsMax !== undefined) {
    const type = configOf("downstream_connections", "DownstreamConnectionsConfig");
    const fields = { max_active_downstream_connections: connectionsMax };
    found.push(
      noted(
        "For the whole process. Connections beyond it are closed at once.",
        extension(monitors.connections, type, fields),
      ),
    );
  }
  return found;
}

function configOf(folder: string, name: string): string {
  return `envoy.extensions.resource_monitors.${folder}.v3.${name}`;
}

function needs(
  context: EnvoyContext,
  { feature, name, what }: { feature: EnvoyFeature; name: string; what: string },
): void {
  if (hasFeature(context, feature)) return;
  const path = ["proxies", "overload", name];
  const instead = "watch the heap instead";
  reportOld(context, { service: undefined, path, feature, what, instead });
}

/** Between the two pressures, the refused share grows from none to all. */
function scaled(monitor: keyof typeof monitors, from: number, to: number): Tree {
  const thresholds = { scaling_threshold: from, saturation_threshold: to };
  return { name: monitors[monitor], scaled: thresholds };
}

function above(monitor: keyof typeof monitors, pressure: number): Tree {
  return { name: monitors[monitor], threshold: { value: pressure } };
}

/** Halfway from the ratio that stops accepting to 1, where the kernel kills the process. */
function lastResort({ stopAcceptingAtRatio }: Pick<HeapOverload, "stopAcceptingAtRatio">): number {
  return round((1 + stopAcceptingAtRatio) / 2);
}

/** Rounds sums of ratios, to remove errors of binary fractions. */
function round(ratio: number): number {
  return Math.round(ratio * 10_000) / 10_000;
}

function loadShedPoints({ heap, cpu }: OverloadPolicy): readonly Tree[] {
  const triggers = [
    ...(heap ? [scaled("heap", heap.shedFromRatio, heap.stopAcceptingAtRatio)] : []),
    ...(cpu ? [scaled("cpu", cpu.shedFromRatio, cpu.shedAllAtRatio)] : []),
  ];
  const points: Tree[] = [];
  if (triggers.length > 0) {
    points.push(
      noted("Refuses more requests the fuller the resource is.", {
        name: "envoy.load_shed_points.http_connection_manager_decode_headers",
        triggers,
      }),
    );
  }
  if (heap === undefined) return points;
  return [
    ...points,
    noted("Asks HTTP/2 callers to reconnect elsewhere.", {
      name: "envoy.load_shed_points.http2_server_go_away_on_dispatch",
      triggers: [above("heap", lastResort(heap))],
    }),
  ];
}

function actions({ heap, cgroupMemory }: OverloadPolicy): readonly Tree[] {
  if (heap === undefined && cgroupMemory === undefined) return [];
  const shrinking = [
    ...(heap ? [above("heap", heap.shrinkAtRatio)] : []),
    ...(cgroupMemory ? [shrinkingBy(cgroupMemory)] : []),
  ];
  const stopping = [
    ...(heap ? [above("heap", heap.stopAcceptingAtRatio)] : []),
    ...(cgroupMemory ? [above("cgroup", cgroupMemory.stopAcceptingAtRatio)] : []),
  ];
  return [
    noted("Returns free memory of the allocator to the kernel.", {
      name: "envoy.overload_actions.shrink_heap",
      triggers: shrinking,
    }),
    ...(heap ? relief(heap) : []),
    { name: "envoy.overload_actions.stop_accepting_requests", triggers: stopping },
    ...(heap ? [stoppingConnections(heap)] : []),
  ];
}

/** Returns actions that free memory before, and while, requests are refused. */
function relief(heap: HeapOverload): readonly Tree[] {
  const { shrinkAtRatio, shedFromRatio, stopAcceptingAtRatio } = heap;
  return [
    noted("Shortens the timeouts of idle connections and streams.", {
      name: "envoy.overload_actions.reduce_timeouts",
      triggers: [scaled("heap", shrinkAtRatio, stopAcceptingAtRatio)],
      typed_config: typed("envoy.config.overload.v3.ScaleTimersOverloadActionConfig", {
        timer_scale_factors: [
          { timer: "HTTP_DOWNSTREAM_CONNECTION_IDLE", min_timeout: "2s" },
          { timer: "HTTP_DOWNSTREAM_STREAM_IDLE", min_scale: { value: 10 } },
        ],
      }),
    }),
    {
      name: "envoy.overload_actions.disable_http_keepalive",
      triggers: [above("heap", shedFromRatio)],
    },
    noted("Resets the streams that hold the most memory, largest first.", {
      name: "envoy.overload_actions.reset_high_memory_stream",
      triggers: [scaled("heap", shedFromRatio, lastResort(heap))],
    }),
  ];
}

function stoppingConnections(heap: HeapOverload): Tree {
  return noted("New connections wait in the kernel.", {
    name: "envoy.overload_actions.stop_accepting_connections",
    triggers: [above("heap", lastResort(heap))],
  });
}

/**
 * Memory that the allocator keeps counts towards the group's: Envoy would stop accepting requests
 * because of unused memory. So it is returned earlier, at nine tenths of the stopping pressure.
 */
function shrinkingBy({ stopAcceptingAtRatio }: CgroupOverload): Tree {
  return above("cgroup", round(stopAcceptingAtRatio * 0.9));
}
