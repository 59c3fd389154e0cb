import { fileURLToPath } from "node:url";
import { Explainer } from "../../decide/inspect/explain.js";
import { BudgetExplainer } from "../../decide/inspect/explain-budgets.js";
import { inspectionMsMax, KeyInspector } from "../../decide/inspect/key-inspector.js";
import type { RoomControls } from "../../decide/waiting-room/room-view.js";
import { doctorProblemRows } from "../../doctor/doctor-problems.js";
import { diagnoseOwn, type OwnView } from "../../doctor/own-checks.js";
import { ReplicaQuestions } from "../../fleet/claims/replica-questions.js";
import { isDriven } from "../../generate/envoy/http/layered-runtime.js";
import type { PolicyText } from "../../policy/parse.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { AdminFinding, FleetView, ServiceState } from "../../rpc/admin/admin-parts.js";
import type { AdminServiceParts, ReadCandidate } from "../../rpc/admin/service-parts.js";
import type { Node } from "../../rpc/nodes/node-registry.js";
import type { OpenAdmission } from "../admission/admission.js";
import type { OpenBudgets } from "../admission/budgets.js";
import { OpenStack } from "../base/open-stack.js";
import { ownFile } from "../base/own-file.js";
import { sha256 } from "../base/sha256.js";
import { readVersion } from "../base/version.js";
import { policyVersion } from "../config/policy-files.js";
import { ConsoleAssets } from "../console/assets.js";
import { Console } from "../console/console.js";
import type { OpenControlPlane } from "../control/control-plane.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { AdminCounts, adminMetrics } from "../metrics/admin-metrics.js";
import type { Observability } from "../observability/observability.js";
import { BudgetAdmin } from "../operator/budget-admin.js";
import { GateAdmin } from "../operator/gate-admin.js";
import { PolicyAdmin } from "../operator/policy-admin.js";
import { PolicyTrialThreads } from "../operator/policy-trials.js";
import { switchesOf } from "../options/decision-options.js";
import type { PolicyStatus } from "../policy/active-policy.js";
import { isTlsSpoken } from "./admin-connections.js";
import { createFleetView, levelsOf } from "./admin-fleet.js";
import { type AdminPort, type AdminPortParts, openAdminPort } from "./admin-port.js";
import { History } from "./history.js";

/** Subsystems that the admin API shows and changes. */
interface AdminParts extends Foundation {
  readonly fleet: Fleet;
  readonly decisions: Decisions;
  readonly admission: OpenAdmission;
  readonly budgets: Pick<OpenBudgets, "budgets" | "topUps">;
  readonly controlPlane: OpenControlPlane;
  readonly observability: Observability;
  /** Undefined: the process has no waiting rooms. */
  readonly rooms: RoomControls | undefined;
}

/** Opens the admin API if it is configured. */
export async function openAdmin(runtime: Runtime, parts: AdminParts): Promise<AdminPort> {
  const { config, metrics } = runtime;
  const { access, tls, observability } = parts;
  const { admin: choice } = config;
  if (choice === undefined || access === undefined) return { close: async () => {} };
  const stack = new OpenStack();
  const questions = createQuestions(runtime, parts);
  const history = stack.keep(createHistory(runtime, parts));
  const services = createServices(runtime, { ...parts, history }, questions);
  const counts = new AdminCounts();
  metrics.add({ counters: adminMetrics(counts) });
  const { calls } = observability;
  const common = { ...runtime, choice, access, counts, calls, tls };
  const console = await openConsole({ ...common, records: parts.operator.records });
  if (console !== undefined) stack.keep(console);
  const port = stack.keep(await openAdminPort({ ...common, services, console }));
  if (questions !== undefined) {
    const { answersFor } = await import("../../rpc/admin/replica-answers.js");
    stack.keep(questions).answer(answersFor(services));
  }
  return { ...port, close: () => stack.close() };
}

/** Opens the console for browsers. Undefined: there is none. */
async function openConsole(
  parts: Runtime &
    Pick<AdminPortParts, "choice" | "access" | "counts" | "calls" | "tls"> &
    Pick<AdminParts["operator"], "records">,
): Promise<Console | undefined> {
  const { choice, logger } = parts;
  if (choice.console === undefined) return undefined;
  const index = ownFile("dist/console/index.html");
  const assets = index && (await ConsoleAssets.read(fileURLToPath(new URL(".", index))));
  if (assets === undefined) {
    logger.info({ event: "consoleMissing" }, "This build has no pages of the console.");
  }
  const isTls = isTlsSpoken(parts);
  const own = { choice: choice.console, oidc: choice.oidc, assets, isTls, version: readVersion() };
  return new Console({ ...parts, ...own });
}

/** Creates the history of the last minutes. */
function createHistory({ clock }: Runtime, parts: AdminParts): History {
  const { policies, decisions, admission, controlPlane, fleet, rooms } = parts;
  const { registry } = controlPlane.plane;
  const { loop } = fleet;
  const sight = { loop: () => loop.status, nowMs: () => clock.monotonicMs() };
  return new History({
    clock,
    counters: decisions.counters,
    policies: policies.feed,
    admission: admission.admission,
    levelsOf: (service, own) => levelsOf(sight, service, own),
    isDegraded: () => decisions.decider.isDegraded,
    envoyCount: () => registry.nodeCount,
    rooms,
  });
}

/** Undefined if this replica's store is not shared. */
function createQuestions(
  { logger, ...runtime }: Runtime,
  { opened }: AdminParts,
): ReplicaQuestions | undefined {
  const { coordination } = opened;
  if (!coordination.isShared) return undefined;
  const onUnreadable = (): void => {
    const event = { event: "replicaQuestionUnreadable" };
    logger.warn(
      event,
      "Ignored a question of another replica that is invalid or from another version.",
    );
  };
  return new ReplicaQuestions({ ...runtime, store: coordination.questions, onUnreadable });
}

function createServices(
  runtime: Runtime,
  parts: AdminParts & { readonly history: History },
  questions: ReplicaQuestions | undefined,
): AdminServiceParts {
  const { config, clock, random, replica } = runtime;
  const { policies, opened, operator, fleet, decisions, controlPlane } = parts;
  const { decider, counters, seen, shadow, lender } = decisions;
  const { liveCount, gates } = fleet;
  const { overrides, records } = operator;
  const { store } = opened;
  const { feed } = policies;
  const view = createView(runtime, parts);
  const policyAdministration = new PolicyAdmin({ ...runtime, policies, records, shadow });
  const explainer = new Explainer({
    switches: switchesOf(config),
    digest: sha256,
    peekedRules: (policy) => decider.peekedRules(policy),
    region: lender?.share,
  });
  return {
    clock,
    random,
    digest: sha256,
    replica,
    policies: feed,
    ruleCounters: (policy) => counters.forPolicy(policy),
    records,
    overrides,
    explainer,
    budgetExplainer: new BudgetExplainer({
      learned: parts.budgets.budgets.learned,
      topUps: parts.budgets.topUps,
      digest: sha256,
      read: (accounts) => {
        return opened.coordination.budgets.read(accounts, clock.monotonicMs() + inspectionMsMax);
      },
    }),
    peek: (key) => store.peek(key, clock.monotonicMs() + inspectionMsMax),
    readCandidate: (files) => readCandidate(files, runtime, policies),
    fleet: view,
    regionCount: lender?.share.count ?? 1,
    history: parts.history,
    keys: new KeyInspector({
      policies: feed,
      overrides,
      explainer,
      store,
      clock,
      areLimitsCarried: () => decider.areLimitsCarried,
      onReset: () => decider.forgetRefusals(),
    }),
    sightings: seen,
    tail: seen,
    policyAdministration,
    trials: new PolicyTrialThreads({
      clock,
      policies,
      current: () => policyAdministration.current(),
    }),
    findings: findingsMaker(parts, view),
    gates: new GateAdmin({ ...runtime, records, gates, policies: feed, rooms: parts.rooms }),
    quotas: controlPlane.quotas,
    budgets: new BudgetAdmin({ ...parts.budgets, store: opened.coordination.budgets, clock }),
    ...roomAdministration(parts),
    ...(questions === undefined
      ? {}
      : { replicas: { liveCount, put: (question) => questions.put(question) } }),
  };
}

function findingsMaker(
  { policies, opened, decisions, controlPlane }: AdminParts,
  view: FleetView,
): NonNullable<AdminServiceParts["findings"]> {
  const { feed } = policies;
  return () =>
    findingsOf({
      version: readVersion(),
      policyStatus: () => feed.status,
      isStoreOut: () => decisions.decider.isDegraded || opened.isAway(),
      nodes: () => controlPlane.plane.registry.nodes,
      services: () => feed.current()?.services ?? [],
      states: () => view.services(() => true),
    });
}

function roomAdministration({
  rooms,
  history,
}: Pick<AdminParts, "rooms"> & { readonly history: History }): Pick<AdminServiceParts, "rooms"> {
  if (rooms === undefined) return {};
  const arrivalsPerSecond = (room: string): number => history.arrivalsPerSecond(room);
  return { rooms: { controls: rooms, arrivalsPerSecond } };
}

function createView(
  { config, replica, clock }: Runtime,
  parts: AdminParts & { readonly history: History },
): FleetView {
  const { policies, opened, fleet, decisions, admission, controlPlane, history } = parts;
  return createFleetView({
    replica,
    policies: policies.feed,
    loop: () => fleet.loop.status,
    plane: controlPlane.plane,
    admission: admission.admission,
    signals: () => admission.signals.polled(),
    recentOf: (service) => history.recentOf(service),
    replicaCount: fleet.replicaCount,
    store: opened.kind,
    lending: () => decisions.lender?.regions() ?? [],
    region: config.regions?.own ?? "",
    isDegraded: () => decisions.decider.isDegraded,
    nowMs: () => clock.monotonicMs(),
  });
}

/** Parses a policy in the same way as the active one. */
async function readCandidate(
  files: readonly PolicyText[],
  { clock, parser }: Pick<Runtime, "clock" | "parser">,
  policies: Foundation["policies"],
): Promise<ReadCandidate> {
  const parsing = await parser({
    input: { kind: "texts", sources: files },
    parse: policies.parse,
    version: policyVersion(files),
    clock,
  });
  switch (parsing.kind) {
    case "policy":
      return { kind: "policy", policy: parsing.policy };
    case "problems": {
      const [first] = parsing.problems;
      const place = first === undefined ? "" : `${first.file}:${first.line}:${first.column}: `;
      const count = parsing.problems.length + parsing.unreportedCount;
      return { kind: "problems", first: `${place}${first?.message ?? ""}`, count };
    }
    case "failed":
      return { kind: "failed", message: parsing.message };
  }
}

/** Sources of this replica's checks. */
interface AdminFindingsParts {
  readonly version: string;
  readonly policyStatus: () => PolicyStatus;
  /** Whether the store is unreachable. */
  readonly isStoreOut: () => boolean;
  readonly nodes: () => Iterable<Node>;
  readonly services: () => readonly ServicePolicy[];
  readonly states: () => readonly Pick<ServiceState, "name" | "overflowPerSecond">[];
}

/** The findings of `headgate doctor` about this replica that need no Envoy. */
function findingsOf(parts: AdminFindingsParts): readonly AdminFinding[] {
  return diagnoseOwn(viewOf(parts)).map((look) => {
    const { title, remedy } = doctorProblemRows[look.id];
    const { kind, id, seen } = look;
    if (look.kind !== "finding") return { kind, id, severity: undefined, seen, title, remedy };
    const { severity, todo = remedy } = look;
    return { kind, id, severity, seen, title, remedy: todo };
  });
}

function viewOf(parts: AdminFindingsParts): OwnView {
  const { version: policyVersion, lastProblem, controlPlane } = parts.policyStatus();
  const isStoreOut = parts.isStoreOut();
  const isCutOff = controlPlane?.isConnected === false;
  const isWell = !isStoreOut && !isCutOff && lastProblem === undefined;
  const waiting = policyVersion === undefined ? "waiting for a policy" : undefined;
  const driven = new Set(
    parts
      .services()
      .filter(isDriven)
      .map(({ name }) => name),
  );
  return {
    headgate: {
      status: waiting ?? (isWell ? "ready" : "degraded"),
      storeState: isStoreOut ? "unavailable" : "ok",
      policyVersion,
      lastReloadProblem: lastProblem !== undefined,
      version: parts.version,
      totals: new Map(),
      decisionMsP99: undefined,
    },
    envoys: [...parts.nodes()].map(({ id, identity, refusal }) => {
      return { name: id, version: identity.version || undefined, refusal };
    }),
    services: parts.states().map(({ name, overflowPerSecond }) => {
      return { name, overflowPerSecond, isDriven: driven.has(name) };
    }),
  };
}
