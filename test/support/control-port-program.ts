import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { noSheets, openControlPort, type SheetSource } from "../../src/app/control-port.js";
import { renderFleet } from "../../src/app/debug-fleet.js";
import { silentLogger } from "../../src/app/logger.js";
import type { NodeReport } from "../../src/core/feedback.js";
import type { FleetSheet } from "../../src/fleet/sheet-codec.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { createPolicyBuilder } from "../../src/policy/policy.js";
import { ControlPlane } from "../../src/rpc/control-plane.js";
import type { ControlPortSettings, SheetCommand } from "./control-port.js";
import { realClock, realRandom } from "./real-clock.js";
import { testSheet } from "./share-sheets.js";

/**
 * A program of its own: the control port, with a stub in place of the fleet's loop that says what
 * it is told over HTTP, and shows there what it was told. Started with its settings as JSON; prints
 * its two ports as JSON once it listens.
 */
const settings: ControlPortSettings = JSON.parse(process.argv[2] ?? "{}");

const reports: NodeReport[] = [];
let sheet: FleetSheet | undefined;
let onSheet = (): void => {};
const sheets: SheetSource = {
  ...noSheets,
  // It does not age: a loop would make another one each second.
  held: () => sheet && { fleet: sheet, atMs: Number.POSITIVE_INFINITY },
  onSheet: (listener) => {
    onSheet = listener;
    return () => {};
  },
  report: (more) => reports.push(...more),
};

function say({ version, services, gates = {} }: SheetCommand): void {
  const verdicts = new Map(
    Object.entries(gates).map(([name, state]) => [name, { rejectRatio: 0, state }]),
  );
  sheet = services && { sheet: testSheet(version, services), verdicts };
  onSheet();
}

const parsed = parsePolicy([{ file: "policy.yaml", text: settings.policy }]);
if (parsed.kind !== "policy") throw new Error(JSON.stringify(parsed));
const builder = createPolicyBuilder("v1");
builder.addServices(parsed.services);
builder.setProxies(parsed.proxies);
builder.setQuotas(parsed.quotas);
const policy = builder.finish();

const { times } = settings;
const plane = new ControlPlane({
  clock: realClock,
  random: realRandom,
  ...(times === undefined ? {} : { times }),
});
const port = await openControlPort({
  plane,
  sheets,
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

const control = createServer((request, response) => {
  if (request.method === "GET") {
    const fleet = renderFleet({ plane, nowMs: () => realClock.monotonicMs() }, undefined);
    const messages = Object.fromEntries(plane.counts.messages);
    response.end(JSON.stringify({ reports, fleet, messages }));
    return;
  }
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    say(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.end();
  });
});
control.listen(0, "127.0.0.1", () => {
  const address = control.address() as AddressInfo;
  const ports = { port: port.address?.port, controlPort: address.port };
  process.stdout.write(`${JSON.stringify(ports)}\n`);
});
