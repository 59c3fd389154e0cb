import type { GateState } from "../../core/admission/gate.js";
import type { NodeShare, ShareSnapshot } from "../../core/feedback/feedback.js";
import { concurrencyPinKeys } from "../../core/feedback/runtime-keys.js";
import type { ProxyGroup } from "../../policy/services/service-clusters.js";
import { emptyLayer, type LayerValue, type NodeLayer } from "../nodes/layer-ledger.js";
import { areSameValues, LayerBuilder } from "../nodes/layer-values.js";
import type {
  BreakerKeys,
  ClusterKeys,
  LayerPlan,
  PlannedRetries,
  PlannedService,
} from "./layer-plan.js";

/** Maximum share: Envoy stores thresholds in 32 bits. */
export const shareMax = 2 ** 32 - 1;

/** Maximum part of a share for retries, if a policy has a number of them and no budget. */
const retryRatioMax = 0.2;

/** The decisions of the fleet that layers depend on. */
interface LayerSnapshot {
  readonly snapshot: ShareSnapshot;
  /** By service: gates of services without a limit for Envoys, or those of the snapshot again. */
  readonly gates: ReadonlyMap<string, GateState>;
  /** When it must no longer be active. Undefined: it does not age. */
  readonly untilMs: number | undefined;
}

/** The Envoy that a layer is for. */
export interface LayerNode {
  readonly id: string;
  readonly identity: ProxyGroup;
  readonly signals: {
    /** Returns its share by cluster, if it is known which clusters it has for the service. */
    divideShare(service: string, share: NodeShare): ReadonlyMap<string, NodeShare>;
  };
  /** Its previous layer, if known. */
  readonly ledger?: { readonly sentLayer: NodeLayer | undefined };
}

/** Returns the layer while there is no snapshot: what applies as long as Headgate runs. */
export function bareLayer({ liveValues }: LayerPlan): NodeLayer {
  return liveValues.size === 0 ? emptyLayer : { ...emptyLayer, values: liveValues };
}

/**
 * Returns the layer of one Envoy for a snapshot. Shares that the snapshot lacks for this Envoy, or
 * that are not valid, are left out, so that its configured defaults apply: Envoy acknowledges wrong
 * values like right ones, and refuses everything at 0.
 */
export function layerOf(
  node: LayerNode,
  { snapshot, gates, untilMs }: LayerSnapshot,
  plan: LayerPlan,
): NodeLayer {
  const likely = node.ledger?.sentLayer ?? plan.last;
  const values = new LayerBuilder(likely?.values);
  for (const [key, value] of plan.liveValues) values.set(key, value);
  const shares = new LayerBuilder(likely?.shares);
  const arePinsContested = plan.contestedPins.length > 0;
  for (const planned of plan.services) {
    const known = snapshot.services.get(planned.name);
    if ((gates.get(planned.name) ?? known?.gate) === "closed") shed(planned, values);
    const share = known?.shares.get(node.id);
    if (share === undefined || !isShare(share)) continue;
    const isPinned = planned.pin === "fixed" && !arePinsContested;
    let held = isPinned ? share.default + share.high : 0;
    for (const key of isPinned ? concurrencyPinKeys : []) values.set(key, held);
    if (planned.isBroken) held = setBreakers({ node, planned, plan, values }, share);
    if (held > 0) shares.set(planned.name, held);
  }
  const version = `${snapshot.term}.${snapshot.version}`;
  const layer = { version, values: values.finish(), shares: shares.finish() };
  plan.last = layer;
  return untilMs === undefined ? layer : { ...layer, untilMs };
}

/**
 * Lets Envoy refuse requests at a closed gate. A limiting gate is left to admission, which draws at
 * random: if Envoy drew as well, only the square of the intended ratio would pass.
 */
function shed({ shedKeys }: PlannedService, to: LayerBuilder<LayerValue>): void {
  for (const key of shedKeys) to.set(key, 100);
}

interface BreakerTerms {
  readonly node: LayerNode;
  readonly planned: PlannedService;
  readonly plan: LayerPlan;
  readonly values: LayerBuilder<LayerValue>;
}

/**
 * Sets the share in all clusters that the service may have, divided among those that this Envoy is
 * known to have. The others get the whole share: this Envoy does not have most of them.
 *
 * @returns how many concurrent requests it may admit
 */
function setBreakers({ node, planned, plan, values }: BreakerTerms, share: NodeShare): number {
  const parts = node.signals.divideShare(planned.name, share);
  const known = planned.clustersAt(node.identity);
  for (const cluster of known) {
    setBreakersOf(plan.keysOf(cluster), parts.get(cluster) ?? share, { planned, values });
  }
  for (const [cluster, part] of parts) {
    if (known.includes(cluster)) continue;
    setBreakersOf(plan.keysOf(cluster), part, { planned, values });
  }
  if (known.length === 0 && parts.size === 0) return 0;
  let sum = 0;
  for (const { default: atDefault, high } of parts.values()) sum += atDefault + high;
  return Math.max(sum, share.default + share.high);
}

/** Sets the breakers of both priorities. Without a share for HIGH, its breaker is left out. */
function setBreakersOf(
  keys: ClusterKeys,
  part: NodeShare,
  to: Pick<BreakerTerms, "planned" | "values">,
): void {
  setBreaker(keys.default, part.default, to);
  if (part.high > 0) setBreaker(keys.high, part.high, to);
}

function setBreaker(
  keys: BreakerKeys,
  max: number,
  { planned, values }: Pick<BreakerTerms, "planned" | "values">,
): void {
  values.set(keys.requests, max);
  // Requests that wait for a connection are in flight like all others: they get no extra room.
  values.set(keys.pendingRequests, max);
  if (planned.retries !== undefined) setRetries(keys, { max, retries: planned.retries }, values);
}

/**
 * Bounds retries by the share, too. A budget is a part of the requests in flight, and so falls with
 * them, except for its fixed minimum, which is bounded by the same part of the share.
 *
 * Example: 20 percent and at least 3: with a share of 50 at least 3, with 10 at least 2, with 4 at
 * least 1. Three without a budget: with a share of 50 or 15 all three, with 10 two.
 */
function setRetries(
  keys: BreakerKeys,
  { max, retries }: { readonly max: number; readonly retries: PlannedRetries },
  values: LayerBuilder<LayerValue>,
): void {
  const part = (ratio: number): number => Math.max(1, Math.ceil(max * ratio));
  if (retries.kind === "fixed") {
    values.set(keys.retries, Math.min(retries.retriesMax, part(retryRatioMax)));
    return;
  }
  const { percent, retriesMin } = retries;
  values.set(keys.budgetPercent, percent);
  values.set(keys.retriesMin, Math.min(retriesMin, part(percent / 100)));
}

/** Whether both parts are integers within the range of Envoy's thresholds. */
function isShare({ default: atDefault, high }: NodeShare): boolean {
  return isWhole(atDefault, 1) && isWhole(high, 0);
}

function isWhole(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value <= shareMax;
}

/** Whether two layers have the same values. */
export function isSameLayer(one: NodeLayer, other: NodeLayer): boolean {
  return areSameValues(one.values, other.values);
}
