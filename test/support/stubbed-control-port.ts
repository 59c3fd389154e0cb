import { silentLogger } from "../../src/app/base/logger.js";
import { openControlPort, type SnapshotSource } from "../../src/app/control/control-port.js";
import { renderFleet } from "../../src/app/observability/debug-fleet.js";
import type { NodeReport } from "../../src/core/feedback/feedback.js";
import type { FleetSnapshot } from "../../src/fleet/loop/snapshot-codec.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { ControlPlane } from "../../src/rpc/control/control-plane.js";
import type { ControlPort, ControlPortSettings, SnapshotCommand } from "./control-port.js";
import { realClock, realRandom } from "./real-clock.js";
import { testSnapshot } from "./share-snapshots.js";
import type { Stage } from "./stage.js";

/** A control port with a stub in place of the fleet's loop, which says what it is told. */
export interface OpenControlPort {
  readonly port: number;
  /** Another snapshot holds from now on. */
  say(command: SnapshotCommand): void;
  /** What it was told by Envoys, as JSON: a `ControlPortView`. */
  look(): string;
  close(): Promise<void>;
}

/** Starts one in this process, which costs none of a program's start. */
export async function startControlPort(
  stage: Stage,
  settings: ControlPortSettings,
): Promise<ControlPort> {
  const { port, say, look, close } = await openStubbedControlPort(settings);
  stage.atEnd(close);
  return { port, say: async (command) => say(command), look: async () => JSON.parse(look()) };
}

/** Opens one in this process. */
export async function openStubbedControlPort(
  settings: ControlPortSettings,
): Promise<OpenControlPort> {
  const reports: NodeReport[] = [];
  let snapshot: FleetSnapshot | undefined;
  let onSnapshot = (): void => {};
  const snapshots: SnapshotSource = {
    // It does not age: a loop would make another one each second.
    held: () => snapshot && { fleet: snapshot, atMs: Number.POSITIVE_INFINITY },
    onSnapshot: (listener) => {
      onSnapshot = listener;
      return () => {};
    },
    // They are filled in anew two seconds later.
    report: (more) => reports.push(...structuredClone(more)),
  };

  function say({ version, services, gates = {} }: SnapshotCommand): void {
    const verdicts = new Map(
      Object.entries(gates).map(([name, state]) => [name, { rejectRatio: 0, state }]),
    );
    snapshot = services && { snapshot: testSnapshot(version, services), verdicts };
    onSnapshot();
  }

  const policy = policyOf(settings.policy);
  const { times } = settings;
  const plane = new ControlPlane({
    clock: realClock,
    random: realRandom,
    ...(times === undefined ? {} : { times }),
  });
  const opened = await openControlPort({
    plane,
    snapshots,
    rooms: { rejectPercents: () => new Map() },
    policies: { current: () => policy, onLoaded: () => () => {} },
    config: {
      controlAddress: { host: "127.0.0.1", port: settings.port },
      connectionsPerAddressMax: 20_000,
      grpcConnectionAgeMsMax: 86_400_000,
      grpcConnectionAgeGraceMs: 3_600_000,
    },
    clock: realClock,
    random: realRandom,
    logger: silentLogger,
    tls: undefined,
    onRefused: () => {},
    onBug: (thrown) => {
      process.stderr.write(`bug: ${String(thrown)}\n`);
    },
  });

  return {
    port: opened.address?.port ?? 0,
    say,
    look: () => {
      const fleet = renderFleet({ plane, nowMs: () => realClock.monotonicMs() }, undefined);
      return JSON.stringify({
        reports,
        fleet,
        messages: Object.fromEntries(plane.counts.messages),
      });
    },
    close: () => opened.close(),
  };
}

function policyOf(text: string): Policy {
  const parsed = parsePolicy([{ file: "policy.yaml", text }]);
  if (parsed.kind !== "policy") throw new Error(JSON.stringify(parsed));
  const builder = new PolicyBuilder("v1");
  builder.addServices(parsed.services);
  builder.setProxies(parsed.proxies);
  builder.setQuotas(parsed.quotas);
  return builder.finish();
}
