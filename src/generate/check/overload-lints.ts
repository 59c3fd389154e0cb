import { quoteText } from "../../policy/problems/problem.js";
import { findNearestName } from "../../policy/text/nearest-name.js";
import {
  type EnvoyMessage,
  fieldAt,
  messageAt,
  messagesAt,
  numberField,
  textField,
} from "./envoy-message.js";
import type { Lint, LintScope } from "./lint.js";

/** Source: Envoy 1.40, overload manager. */
const actionNames = [
  "close_idle_http_connections",
  "disable_http_keepalive",
  "reduce_timeouts",
  "reject_incoming_connections",
  "reset_high_memory_stream",
  "shrink_heap",
  "stop_accepting_connections",
  "stop_accepting_requests",
].map((name) => `envoy.overload_actions.${name}`);

/** Source: Envoy 1.40, load shed points. Envoy also accepts names that it does not know. */
const shedPointNames = [
  "connection_pool_new_connection",
  "hcm_ondata_creating_codec",
  "http1_server_abort_dispatch",
  "http2_server_go_away_and_close_on_dispatch",
  "http2_server_go_away_on_dispatch",
  "http3_server_go_away_and_close_on_dispatch",
  "http3_server_go_away_on_dispatch",
  "http_connection_manager_decode_headers",
  "http_downstream_filter_check",
  "tcp_listener_accept",
  "tcp_proxy_on_data",
  "tcp_proxy_upstream_connect",
].map((name) => `envoy.load_shed_points.${name}`);

const monitors = "envoy.extensions.resource_monitors";

/** Configuration type of each monitor. Source: Envoy 1.40, resource monitors. */
const monitorTypes: ReadonlyMap<string, string> = new Map([
  ["envoy.resource_monitors.cgroup_memory", `${monitors}.cgroup_memory.v3.CgroupMemoryConfig`],
  [
    "envoy.resource_monitors.cpu_utilization",
    `${monitors}.cpu_utilization.v3.CpuUtilizationConfig`,
  ],
  ["envoy.resource_monitors.fixed_heap", `${monitors}.fixed_heap.v3.FixedHeapConfig`],
  [
    "envoy.resource_monitors.global_downstream_max_connections",
    `${monitors}.downstream_connections.v3.DownstreamConnectionsConfig`,
  ],
  [
    "envoy.resource_monitors.injected_resource",
    `${monitors}.injected_resource.v3.InjectedResourceConfig`,
  ],
]);

const doorActions = ["reject_incoming_connections", "stop_accepting_connections"];

/** Lints of the overload manager. */
export const overloadLints: readonly Lint[] = [
  { on: "envoy.config.overload.v3.OverloadManager", check: checkManager },
  { on: "envoy.config.overload.v3.ResourceMonitor", check: checkMonitor },
  { on: "envoy.config.overload.v3.OverloadAction", check: checkAction },
  { on: "envoy.config.overload.v3.LoadShedPoint", check: checkShedPoint },
  { on: "envoy.config.overload.v3.ScaledTrigger", check: checkScaled },
  { on: `${monitors}.fixed_heap.v3.FixedHeapConfig`, check: checkHeap },
];

function checkManager(manager: EnvoyMessage, scope: LintScope): void {
  const watched = messagesAt(manager, "resource_monitors");
  const names = watched.map((monitor) => textField(monitor, "name") ?? "");
  const acting = [...messagesAt(manager, "actions"), ...messagesAt(manager, "loadshed_points")];
  for (const one of acting) checkTriggers(one, names, scope);
  checkMemoryCap(manager, watched, scope);
}

function checkTriggers(
  acting: EnvoyMessage,
  watched: readonly string[],
  { report }: LintScope,
): void {
  const seen = new Set<string>();
  for (const trigger of messagesAt(acting, "triggers")) {
    const name = textField(trigger, "name") ?? "";
    const { path } = trigger;
    if (!watched.includes(name)) {
      const nearest = findNearestName(name, watched);
      const hint = nearest === undefined ? "add its monitor" : `did you mean ${nearest}`;
      report({ id: "HG405", path, message: `${quoteText(name)} has no monitor`, hint });
    }
    if (seen.has(name)) {
      const message = `${quoteText(name)} is a trigger twice`;
      report({ id: "HG407", path, message, hint: "keep one of them" });
    }
    seen.add(name);
  }
}

/** The cap counts the whole control group, which may use more memory than its heap. */
function checkMemoryCap(
  manager: EnvoyMessage,
  watched: readonly EnvoyMessage[],
  { report }: LintScope,
): void {
  const name = "envoy.resource_monitors.cgroup_memory";
  const group = watched.find((monitor) => textField(monitor, "name") === name);
  const cap = numberField(group, "typed_config", "max_memory_bytes");
  const heap = watched
    .map((one) => numberField(one, "typed_config", "max_heap_size_bytes"))
    .find(Boolean);
  const closes = messagesAt(manager, "actions").some(
    (action) =>
      doorActions.includes((textField(action, "name") ?? "").split(".").at(-1) ?? "") &&
      messagesAt(action, "triggers").some((trigger) => textField(trigger, "name") === name),
  );
  if (group === undefined || cap === undefined || !closes || heap === undefined || cap > heap)
    return;
  report({
    id: "HG426",
    path: group.path,
    message: `the cap of the group, ${cap} bytes, is not above that of the heap, ${heap}`,
    hint: "raise it: above the cap every connection is refused",
  });
}

function checkMonitor(monitor: EnvoyMessage, { report }: LintScope): void {
  const name = textField(monitor, "name") ?? "";
  const wanted = monitorTypes.get(name);
  const found = messageAt(monitor, "typed_config")?.desc.typeName;
  if (wanted !== undefined && (found === undefined || found === wanted)) return;
  const known = [...monitorTypes].find(([, type]) => type === found)?.[0];
  const nearest = known ?? findNearestName(name, [...monitorTypes.keys()]);
  const message =
    wanted === undefined
      ? `${quoteText(name)} is not a resource monitor`
      : `${quoteText(name)} has the configuration of another monitor`;
  const hint = nearest === undefined ? `use ${[...monitorTypes.keys()].join(", ")}` : nearest;
  report({ id: "HG409", path: monitor.path, message, hint: `did you mean ${hint}` });
}

function checkAction(action: EnvoyMessage, { report }: LintScope): void {
  const name = textField(action, "name") ?? "";
  if (actionNames.includes(name)) return;
  const hint = nearestHint(name, actionNames);
  report({
    id: "HG404",
    path: action.path,
    message: `${quoteText(name)} is not an overload action`,
    hint,
  });
}

function checkShedPoint(point: EnvoyMessage, { report }: LintScope): void {
  const name = textField(point, "name") ?? "";
  if (shedPointNames.includes(name)) return;
  const hint = nearestHint(name, shedPointNames);
  const message = `${quoteText(name)} is not a load shed point, so it sheds nothing`;
  report({ id: "HG417", path: point.path, message, hint });
}

function nearestHint(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? `use ${known.join(", ")}` : `did you mean ${nearest}`;
}

function checkScaled(scaled: EnvoyMessage, { report }: LintScope): void {
  const from = numberField(scaled, "scaling_threshold") ?? 0;
  const to = numberField(scaled, "saturation_threshold") ?? 0;
  if (from < to) return;
  const message = `it starts at ${from} and ends at ${to}`;
  report({ id: "HG406", path: scaled.path, message, hint: "write the lower one first" });
}

function checkHeap(heap: EnvoyMessage, { report }: LintScope): void {
  const bytes = numberField(heap, "max_heap_size_bytes");
  const byKey = fieldAt(heap, "max_heap_size_bytes_runtime");
  if ((bytes ?? 0) > 0 || byKey !== undefined) return;
  const message = "the maximum heap is 0 bytes";
  report({ id: "HG408", path: heap.path, message, hint: "set max_heap_size_bytes" });
}
