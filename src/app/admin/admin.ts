import { Explainer } from "../../decide/inspect/explain.js";
import { inspectionMsMax, KeyInspector } from "../../decide/inspect/key-inspector.js";
import { ReplicaQuestions } from "../../fleet/claims/replica-questions.js";
import type { PolicyText } from "../../policy/parse.js";
import type { AdminServiceParts, ReadCandidate } from "../../rpc/admin/service-parts.js";
import type { OpenAdmission } from "../admission/admission.js";
import { OpenStack } from "../base/open-stack.js";
import { sha256 } from "../base/sha256.js";
import { policyVersion } from "../config/policy-files.js";
import type { OpenControlPlane } from "../control/control-plane.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { AdminCounts, adminMetrics } from "../metrics/admin-metrics.js";
import type { Observability } from "../observability/observability.js";
import { GateAdmin } from "../operator/gate-admin.js";
import { PolicyAdmin } from "../operator/policy-admin.js";
import { switchesOf } from "../options/decision-options.js";
import { createFleetView } from "./admin-fleet.js";
import { type AdminPort, openAdminPort } from "./admin-port.js";

/** What the admin API shows and changes. */
interface AdminParts extends Foundation {
  readonly fleet: Fleet;
  readonly decisions: Decisions;
  readonly admission: OpenAdmission;
  readonly controlPlane: OpenControlPlane;
  readonly observability: Observability;
}

/** Opens the admin API where the configuration wants one. */
export async function openAdmin(runtime: Runtime, parts: AdminParts): Promise<AdminPort> {
  const { config, metrics } = runtime;
  const { access, tls, observability } = parts;
  const { admin: choice } = config;
  if (choice === undefined || access === undefined) return { close: async () => {} };
  const stack = new OpenStack();
  const questions = createQuestions(runtime, parts);
  const services = createServices(runtime, parts, questions);
  const counts = new AdminCounts();
  metrics.add({ counters: adminMetrics(counts) });
  const { calls } = observability;
  const port = stack.keep(
    await openAdminPort({ ...runtime, choice, access, services, counts, calls, tls }),
  );
  if (questions !== undefined) {
    const { answersFor } = await import("../../rpc/admin/replica-answers.js");
    stack.keep(questions).answer(answersFor(services));
  }
  return { ...port, close: () => stack.close() };
}

/** Undefined where this replica shares its store with nobody. */
function createQuestions(
  { logger, ...runtime }: Runtime,
  { opened }: AdminParts,
): ReplicaQuestions | undefined {
  const { coordination } = opened;
  if (!coordination.isShared) return undefined;
  const onUnreadable = (): void => {
    const event = { event: "replicaQuestionUnreadable" };
    logger.warn(event, "A question of another replica is none, or of another version: left out.");
  };
  return new ReplicaQuestions({ ...runtime, store: coordination.questions, onUnreadable });
}

function createServices(
  runtime: Runtime,
  parts: AdminParts,
  questions: ReplicaQuestions | undefined,
): AdminServiceParts {
  const { config, clock, random, replica } = runtime;
  const { policies, opened, operator, fleet, decisions, admission, controlPlane } = parts;
  const { decider, counters, seen, shadow } = decisions;
  const { replicaCount, liveCount, loop, gates } = fleet;
  const { overrides, records } = operator;
  const { store } = opened;
  const { feed } = policies;
  const explainer = new Explainer({
    switches: switchesOf(config),
    digest: sha256,
    peekedRules: (policy) => decider.peekedRules(policy),
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
    peek: (key) => store.peek(key, clock.monotonicMs() + inspectionMsMax),
    readCandidate: (files) => readCandidate(files, runtime, policies),
    fleet: createFleetView({
      replica,
      policies: feed,
      loop: () => loop.status,
      plane: controlPlane.plane,
      admission: admission.admission,
      replicaCount,
      store: opened.kind,
      isDegraded: () => decider.isDegraded,
      nowMs: () => clock.monotonicMs(),
    }),
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
    policyAdministration: new PolicyAdmin({ ...runtime, policies, records, shadow }),
    gates: new GateAdmin({ ...runtime, records, gates, policies: feed }),
    quotas: controlPlane.quotas,
    ...(questions === undefined
      ? {}
      : { replicas: { liveCount, put: (question) => questions.put(question) } }),
  };
}

/** Reads a policy as the active one would be. */
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
