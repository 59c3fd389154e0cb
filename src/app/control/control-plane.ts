import { type QuotaEvent, QuotaRegistry } from "../../decide/quota/quota-registry.js";
import { QuotaLeases } from "../../fleet/claims/quota-leases.js";
import { ControlPlane } from "../../rpc/control/control-plane.js";
import { pushTimesFor } from "../../rpc/control/layer-pusher.js";
import { cacheBounds } from "../base/cache-bounds.js";
import type { ListenAddress } from "../base/listen.js";
import type { Logger } from "../base/logger.js";
import { OpenStack } from "../base/open-stack.js";
import { sha256 } from "../base/sha256.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { controlMetrics } from "../metrics/control-port-metrics.js";
import { switchesOf } from "../options/decision-options.js";
import { remedyOf } from "../store/store-remedies.js";
import type { OpenWaitingRooms } from "../waiting-room/waiting-rooms.js";
import { createRefusalReport, openControlPort } from "./control-port.js";

/** Exchange with Envoys: they report loads, and receive runtime layers and quota assignments. */
export interface OpenControlPlane {
  readonly plane: ControlPlane;
  /** Quota assignments of Envoys. */
  readonly quotas: QuotaRegistry;
  /** Absent if there is no control port, or if its port is taken. */
  readonly address?: ListenAddress;
  /** Ends all streams, so that Envoys go to another replica, and stops all background work. */
  close(): Promise<void>;
}

interface OpenControlPlaneParts
  extends Pick<Foundation, "policies" | "opened" | "operator" | "tls"> {
  readonly fleet: Fleet;
  readonly decisions: Decisions;
  readonly rooms: Pick<OpenWaitingRooms, "rejectPercents">;
}

/** Opens the control plane, and the control port if it is configured. */
export async function openControlPlane(
  runtime: Runtime,
  parts: OpenControlPlaneParts,
): Promise<OpenControlPlane> {
  const { config, clock, metrics, refusedAt } = runtime;
  const stack = new OpenStack();
  const quotas = stack.keep(createQuotas(runtime, parts));
  const { layerTtlMs, nodeRules, identityPercentMax } = config;
  const plane = new ControlPlane({
    ...runtime,
    times: pushTimesFor(layerTtlMs),
    quotas: { quotas, onIgnored: (cause) => quotas.noteIgnored(cause) },
    ...(nodeRules === undefined ? {} : { nodeRules }),
    identityPercentMax,
    nodesBytesMax: cacheBounds(config).nodesBytesMax,
    onRefused: createRefusalReport(runtime),
  });
  metrics.add(controlMetrics({ plane, nowMs: () => clock.monotonicMs(), quotas }));
  const port = stack.keep(
    await openControlPort({
      ...runtime,
      plane,
      snapshots: parts.fleet.loop,
      rooms: parts.rooms,
      policies: parts.policies.feed,
      tls: parts.tls,
      onRefused: refusedAt("control"),
    }),
  );
  const address = port.address === undefined ? {} : { address: port.address };
  return { plane, quotas, ...address, close: () => stack.close() };
}

/** Creates what divides quotas among Envoys and, with a shared store, among replicas. */
function createQuotas(runtime: Runtime, parts: OpenControlPlaneParts): QuotaRegistry {
  const { config, random, logger } = runtime;
  const { policies, opened, operator, fleet, decisions } = parts;
  return new QuotaRegistry({
    ...runtime,
    policies: policies.feed,
    overrides: operator.overrides,
    store: opened.store,
    leases: new QuotaLeases({ store: opened.coordination.quotas, random }),
    counters: decisions.counters,
    replicaCount: fleet.replicaCount,
    region: decisions.lender?.share,
    switches: switchesOf(config),
    digest: sha256,
    identityPercentMax: config.identityPercentMax,
    bucketsBytesMax: cacheBounds(config).quotaBucketsBytesMax,
    onEvent: (event) => logQuotas(event, logger),
  });
}

/** Logs changes of the shares of quotas. */
function logQuotas(event: QuotaEvent, logger: Logger): void {
  const { kind, ...facts } = event;
  const line = { event: kind, ...facts };
  switch (event.kind) {
    case "quotaLeasesUnrenewed":
      logger.warn(
        { ...line, remedy: remedyOf(event.code) },
        "Quota shares cannot be claimed from the store: the last shares stay valid " +
          "until they expire.",
      );
      return;
    case "quotaLeasesLost":
      logger.warn(line, "Quota shares have expired: limits answer with their on_store_failure.");
      return;
    case "quotaLeasesFound":
      logger.info(line, "Quota shares are claimed from the store again.");
      return;
    case "quotaBucketsIgnored":
      logger.warn(line, "Envoys report buckets without a share: their own settings apply.");
      return;
    case "quotaNodeTwice":
      logger.warn(
        { ...line, header: "x-headgate-node" },
        "Two live Envoys have the same name, and each counts separately. Names must be unique.",
      );
      return;
  }
}
