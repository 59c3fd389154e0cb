import type { Tree, TreeMap } from "./document.js";
import { isSameValue, type MergePlace, type MergeStyle, mergeMaps } from "./merge-values.js";
import { isPlainList, isPlainMap, mapIn, type PlainMap, type PlainValue } from "./plain-tree.js";
import { asMap } from "./tree-members.js";

/** API group of Istio's traffic objects. */
export const istioGroup = "networking.istio.io";

const gatewayGroup = "gateway.envoyproxy.io";

/** A generated object without comments, and its namespace. */
export interface PlainObject {
  readonly namespace: string;
  readonly spec: PlainMap;
}

/** How a generated object is merged into an object of the user. */
export interface MergeRule {
  readonly group: string;
  readonly kind: string;
  readonly style: MergeStyle;
  /** Reports whether both objects apply to the same target. */
  readonly isSame: (theirs: PlainObject, ours: PlainObject) => boolean;
  /** Names what both objects apply to, for messages. */
  readonly subject: (ours: PlainObject) => string;
  /** Reports whether ours would have no effect next to theirs. Default: always true. */
  readonly replaces?: (theirs: PlainObject, ours: PlainObject) => boolean;
  /** Reports whether theirs applies to more than ours does. Default: always false. */
  readonly isShared?: (theirs: PlainObject) => boolean;
  /** Merges the settings. Default: name by name. */
  readonly merge?: (theirs: PlainMap, ours: TreeMap, place: MergePlace) => Tree;
}

/** Rules for kinds that allow one object for each host, workload or target. */
const mergeRules: readonly MergeRule[] = [
  {
    group: istioGroup,
    kind: "DestinationRule",
    style: { wholes: ["loadBalancer", "tls"] },
    isSame: (theirs, ours) => {
      return fullHost(theirs.spec["host"], theirs.namespace, ours.spec["host"]);
    },
    subject: ({ spec }) => `host ${String(spec["host"])}`,
    // In another namespace, or for some workloads, it hides ours only from some callers.
    replaces: (theirs, ours) => {
      return theirs.namespace === ours.namespace && theirs.spec["workloadSelector"] === undefined;
    },
    merge: mergeTraffic,
  },
  {
    group: istioGroup,
    kind: "Sidecar",
    style: { wholes: [] },
    isSame: (theirs, ours) => {
      const labels = mapIn(mapIn(theirs.spec, "workloadSelector"), "labels");
      const own = mapIn(mapIn(ours.spec, "workloadSelector"), "labels");
      return theirs.namespace === ours.namespace && isSameValue(labels, own);
    },
    subject: () => "the same pods",
  },
  targetRule("BackendTrafficPolicy", {
    wholes: ["retry", "percent"],
    lists: { rules: undefined },
  }),
  targetRule("ClientTrafficPolicy", { wholes: ["clientIPDetection", "clientValidation"] }),
  targetRule("EnvoyExtensionPolicy", { wholes: [], lists: { extProc: "backendRefs" } }),
];

/** Returns the merge rule of a kind. Undefined if there is none. */
export function mergeRuleOf(group: string, kind: string): MergeRule | undefined {
  return mergeRules.find((rule) => rule.group === group && rule.kind === kind);
}

/** Reports whether objects of a kind can be merged into. */
export function isMergedKind(group: string, kind: string): boolean {
  const isRoute = group === istioGroup && kind === "VirtualService";
  return isRoute || mergeRuleOf(group, kind) !== undefined;
}

/**
 * Reports whether a host, as istiod reads it in an object of `namespace`, is equal to `host`. A
 * name without a dot is a Service of the namespace.
 */
export function fullHost(
  text: PlainValue | undefined,
  namespace: string,
  host: PlainValue | undefined,
): boolean {
  if (typeof text !== "string" || typeof host !== "string") return false;
  if (text.includes(".")) return text === host;
  return text !== "" && host.startsWith(`${text}.${namespace}.svc.`);
}

/** Envoy Gateway's policies: one per target in its namespace. Further ones are refused. */
function targetRule(kind: string, style: MergeStyle): MergeRule {
  return {
    group: gatewayGroup,
    kind,
    style,
    isSame: (theirs, ours) => {
      const [own] = targetsOf(ours.spec);
      const isTarget = targetsOf(theirs.spec).some((target) => own && isSameTarget(target, own));
      return theirs.namespace === ours.namespace && isTarget;
    },
    subject: ({ spec }) => {
      const [target = {}] = targetsOf(spec);
      return `${String(target["kind"])} ${String(target["name"])}`;
    },
    isShared: ({ spec }) => targetsOf(spec).length > 1 || isPlainList(spec["targetSelectors"]),
    merge: (theirs, { targetRefs: _ours, ...settings }, place) => {
      return mergeMaps(theirs, settings, place);
    },
  };
}

function targetsOf(spec: PlainMap): readonly PlainMap[] {
  const { targetRef, targetRefs } = spec;
  const all = isPlainList(targetRefs) ? targetRefs : targetRef === undefined ? [] : [targetRef];
  return all.filter(isPlainMap);
}

/** A policy for one section (a listener, a rule) is another policy, for a part of the target. */
function isSameTarget(one: PlainMap, other: PlainMap): boolean {
  return ["group", "kind", "name", "sectionName"].every((name) => one[name] === other[name]);
}

/**
 * Merges the settings, and repeats them where they would be hidden: at the service's port, which
 * inherits nothing, and in subsets, whose settings replace the general ones as a whole.
 *
 * Source: Istio, DestinationRule, `portLevelSettings` and `subsets`.
 */
function mergeTraffic(theirs: PlainMap, ours: TreeMap, place: MergePlace): Tree {
  const settings = asMap(ours["trafficPolicy"]) ?? {};
  const merged: Record<string, Tree> = { ...theirs };
  const at = (path: MergePlace["path"]): MergePlace => ({
    ...place,
    path: [...place.path, ...path],
  });
  merged["trafficPolicy"] = withPorts(
    mergeMaps(mapIn(theirs, "trafficPolicy"), settings, at(["trafficPolicy"])),
    { theirs: mapIn(theirs, "trafficPolicy"), ours: settings, place: at(["trafficPolicy"]) },
  );
  const { subsets } = theirs;
  if (!isPlainList(subsets)) return merged;
  merged["subsets"] = subsets.map((subset, index) => {
    if (!isPlainMap(subset) || !isPlainMap(subset["trafficPolicy"])) return subset;
    const own = subset["trafficPolicy"];
    const reported = Object.entries(settings).filter(([name]) => Object.hasOwn(own, name));
    const where = at(["subsets", index, "trafficPolicy"]);
    const hidden = mergeMaps(own, Object.fromEntries(reported), where);
    const policy = withPorts(hidden, { theirs: own, ours: settings, place: where });
    return { ...subset, trafficPolicy: policy };
  });
  return merged;
}

function withPorts(
  merged: TreeMap,
  from: { readonly theirs: PlainMap; readonly ours: TreeMap; readonly place: MergePlace },
): TreeMap {
  const { portLevelSettings: ports } = from.theirs;
  if (!isPlainList(ports)) return merged;
  // Settings of a host's connections as a whole cannot be set for a port.
  const { retryBudget: _all, ...ours } = from.ours;
  const settings = ports.map((port, index) => {
    const path = [...from.place.path, "portLevelSettings", index];
    return isPlainMap(port) ? mergeMaps(port, ours, { ...from.place, path }) : port;
  });
  return { ...merged, portLevelSettings: settings };
}
