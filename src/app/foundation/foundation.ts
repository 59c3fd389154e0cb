import { type AdminAccess, openAdminAccess } from "../access/admin-access.js";
import { openAll } from "../base/open-stack.js";
import { policyMetrics, xdsMetrics } from "../metrics/policy-metrics.js";
import { followStore, type OpenPolicies, openPolicies } from "../policy/policies.js";
import type { OpenStore } from "../store/open-store.js";
import { heldUntil, openStore } from "../store/store.js";
import { type OpenTls, openTls, tlsMetrics } from "../tls/tls.js";
import { type OperatorRecords, openOperatorRecords } from "./operator-records.js";
import type { Runtime } from "./runtime.js";

/** Parts that all subsystems need: certificates, access lists, the policy and the store. */
export interface Foundation {
  /** Undefined if gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
  /** Undefined if there is no admin API. */
  readonly access: AdminAccess | undefined;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  readonly operator: OperatorRecords;
  close(): Promise<void>;
}

/**
 * Opens the parts that all subsystems need.
 *
 * @throws StartFailure with a text for people and an exit code; nothing is left open then
 */
export function openFoundation(runtime: Runtime): Promise<Foundation> {
  const { config, metrics, processCounts } = runtime;
  return openAll(async (stack) => {
    const tls = config.tls && stack.keep(await openTls(config.tls, runtime));
    const { admin: choice } = config;
    const access = choice && stack.keep(await openAdminAccess({ ...runtime, choice }));
    const files = stack.keep(await openPolicies(config, runtime));
    const onBadBuckets = (count: number): void => {
      processCounts.badValueCount += count;
    };
    const shared = await openStore({ ...runtime, onBadBuckets });
    for (const { store } of [shared, ...shared.peers]) stack.keep(store);
    const operator = stack.keep(openOperatorRecords({ ...runtime, opened: shared }));
    const policies = await followStore(files, { ...runtime, records: operator.records });
    if (policies !== files) stack.keep(policies);
    // A replica with an older policy must not decide on the buckets that all replicas share.
    const opened = policies.isKnown === undefined ? shared : heldUntil(shared, policies.isKnown);
    if (tls !== undefined) metrics.add(tlsMetrics(() => tls.status));
    if (policies.xdsStatus !== undefined) metrics.add(xdsMetrics(policies.xdsStatus));
    metrics.add(policyMetrics(policies.feed), operator.metrics);
    return { tls, access, policies, opened, operator, close: () => stack.close() };
  });
}
