import type { Tree, TreeMap } from "./document.js";
import { isSameValue, type MergePlace, type MergeStyle, mergeMaps } from "./merge-values.js";
import { isPlainList, isPlainMap, mapIn, type PlainMap, type PlainValue } from "./plain-tree.js";
import { asMap } from "./tree-members.js";

/** Group of Istio's objects of traffic. */
export const istioGroup = "networking.istio.io";

const gatewayGroup = "gateway.envoyproxy.io";

/** An object of ours, without comments, and in which namespace it stands. */
export interface PlainObject {
  readonly namespace: string;
  readonly spec: PlainMap;
}

/** How an object of ours goes into one of the user's. */
export interface MergeRule {
  readonly group: string;
  readonly kind: string;
  readonly style: MergeStyle;
  /** Whether both are about the same. */
  readonly isSame: (theirs: PlainObject, ours: PlainObject) => boolean;
  /** What both are about, as people say it. */
  readonly subject: (ours: PlainObject) => string;
  /** Whether ours would never act beside it; default: it would not. */
  readonly replaces?: (theirs: PlainObject, ours: PlainObject) => boolean;
  /** Whether it is about more than ours; default: it is not. */
  readonly isShared?: (theirs: PlainObject) => boolean;
  /** Default: name by name. */
  readonly merge?: (theirs: PlainMap, ours: TreeMap, place: MergePlace) => Tree;
}

/** Those that have one object of a kind for a host, a workload or a target. */
const mergeRules: readonly MergeRule[] = [
  {
    group: istioGroup,
    kind: "DestinationRule",
    style: { wholes: ["loadBalancer", "tls"] },
    isSame: (theirs, ours) => {
      return fullHost(theirs.spec["host"], theirs.namespace, ours.spec["host"]);
    },
    subject: ({ spec }) => `host ${String(spec["host"])}`,
    // In another namespace, or for some workloads, it hides ours from some callers alone.
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

/** The rule of a kind; undefined where there is none. */
export function mergeRuleOf(group: string, kind: string): MergeRule | undefined {
  return mergeRules.find((rule) => rule.group === group && rule.kind === kind);
}

/** Whether objects of a kind may be merged into. */
export function isMergedKind(group: string, kind: string): boolean {
  const isRoute = group === istioGroup && kind === "VirtualService";
  return isRoute || mergeRuleOf(group, kind) !== undefined;
}

/**
 * Whether a host, as istiod reads it in an object of a namespace, is that one: a name without a dot
 * is a Service of the namespace.
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

/** Policies of Envoy Gateway: one for each target in its namespace, whose others are refused. */
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

/** One of a section (a listener, a rule) is another one, for less. */
function isSameTarget(one: PlainMap, other: PlainMap): boolean {
  return ["group", "kind", "name", "sectionName"].every((name) => one[name] === other[name]);
}

/**
 * Settings for all, and where they would be hidden: at the service's port, whose settings take
 * nothing from those for all, and in subsets, which take no part of what they say in part.
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
  // What holds for a host's connections as a whole is not said of a port.
  const { retryBudget: _all, ...ours } = from.ours;
  const settings = ports.map((port, index) => {
    const path = [...from.place.path, "portLevelSettings", index];
    return isPlainMap(port) ? mergeMaps(port, ours, { ...from.place, path }) : port;
  });
  return { ...merged, portLevelSettings: settings };
}
