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

/** The largest share there is: Envoy holds thresholds in 32 bits. */
export const shareMax = 2 ** 32 - 1;

/** The part of a share that may be retries where a policy has a number of them and no budget. */
const retryRatioMax = 0.2;

/** What the fleet has decided, as layers need it. */
interface LayerSnapshot {
  readonly snapshot: ShareSnapshot;
  /** By service: gates of services that have no limit for Envoys, or the same word once more. */
  readonly gates: ReadonlyMap<string, GateState>;
  /** When nothing of it may be active any more; undefined: it does not age. */
  readonly untilMs: number | undefined;
}

/** Whose layer it is. */
export interface LayerNode {
  readonly id: string;
  readonly identity: ProxyGroup;
  readonly signals: {
    /** Its share by cluster, where it is known in which clusters it has the service. */
    divideShare(service: string, share: NodeShare): ReadonlyMap<string, NodeShare>;
  };
  /** Its layer before, if it is known. */
  readonly ledger?: { readonly sentLayer: NodeLayer | undefined };
}

/** What an Envoy is told while there is no snapshot: what holds as long as Headgate lives. */
export function bareLayer({ liveValues }: LayerPlan): NodeLayer {
  return liveValues.size === 0 ? emptyLayer : { ...emptyLayer, values: liveValues };
}

/**
 * The layer of one Envoy by a snapshot. What the snapshot does not say of this Envoy, or says in
 * numbers that are no shares, is left out, so that its configured defaults hold: Envoy acknowledges
 * wrong values like right ones, and takes 0 to refuse everything.
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
 * A closed gate is answered by Envoy. One that is half open is left to admission, which draws: were
 * Envoy to draw as well, only the square of what may pass would.
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
 * The share in all clusters that it may be in: divided where it is known which of them there are.
 * The others have it whole: most names are of clusters that this Envoy has not.
 *
 * @returns what it may let in at once
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

/** At both priorities; without a share of HIGH, nothing is said of it. */
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
  // What waits for a connection is as much on its way as what is in work: it gets no more room.
  values.set(keys.pendingRequests, max);
  if (planned.retries !== undefined) setRetries(keys, { max, retries: planned.retries }, values);
}

/**
 * Retries are of the share, too. A budget is a part of what is in work, and so falls with it, but
 * for the number that passes whatever is in work: that is bounded by the same part of the share.
 *
 * Example: 20 percent and at least 3: of a share of 50 at least 3, of one of 10 at least 2, of one
 * of 4 at least 1. Three without a budget: of a share of 50 or 15 all, of one of 10 two.
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

/** Whether both parts are whole numbers that Envoy takes for what they are. */
function isShare({ default: atDefault, high }: NodeShare): boolean {
  return isWhole(atDefault, 1) && isWhole(high, 0);
}

function isWhole(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value <= shareMax;
}

/** Whether two layers tell an Envoy the same. */
export function isSameLayer(one: NodeLayer, other: NodeLayer): boolean {
  return areSameValues(one.values, other.values);
}
