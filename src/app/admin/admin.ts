import type { Clock, Random } from "../../core/base/clock.js";
import { Explainer } from "../../decide/inspect/explain.js";
import { inspectionMsMax, KeyInspector } from "../../decide/inspect/key-inspector.js";
import { ReplicaQuestions } from "../../fleet/claims/replica-questions.js";
import type { PolicyFile } from "../../rpc/admin/admin-parts.js";
import { answersFor } from "../../rpc/admin/replica-answers.js";
import type { AdminServiceParts, ReadCandidate } from "../../rpc/admin/service-parts.js";
import { sha256 } from "../base/digest.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import { policyVersion } from "../config/policy-files.js";
import type { OperatorRecords } from "../operator/operator-records.js";
import { switchesOf } from "../options/decision-options.js";
import type { OpenPolicies } from "../policy/policies.js";
import type { ParsesPolicies } from "../policy/policy-parsing.js";
import type { AdminAccess } from "../ports/admin-access.js";
import type { AdminCallLog } from "../ports/admin-call-log.js";
import type { OpenStore } from "../store/store.js";
import type { OpenTls } from "../tls/tls.js";
import { createFleetView } from "./admin-fleet.js";
import { type AdminPort, openAdminPort } from "./admin-port.js";
import type { Core } from "./core.js";

/** What the admin API is made of. */
export interface AdminParts {
  readonly core: Core;
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  readonly operator: OperatorRecords;
  readonly replicaCount: () => number;
  /** Live replicas, this one included. */
  readonly liveCount: () => number;
  /** Absent where there is no admin API. */
  readonly access: AdminAccess | undefined;
  readonly calls: AdminCallLog;
  /** Undefined where gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
}

/** Opens the admin API where the configuration wants one. */
export async function openAdmin(parts: AdminParts): Promise<AdminPort> {
  const { core, config, clock, logger, access, calls, tls } = parts;
  const { admin: choice } = config;
  if (choice === undefined || access === undefined) return { close: async () => {} };
  const questions = createQuestions(parts);
  const services = createServices(parts, questions);
  const { adminCounts: counts, onBug } = core;
  const shared = { clock, logger, tls, onBug };
  const port = await openAdminPort({ choice, access, services, counts, calls, ...shared });
  questions?.answer(answersFor(services));
  return {
    ...port,
    close: async () => {
      questions?.close();
      await port.close();
    },
  };
}

/** Undefined where this replica shares its store with nobody. */
function createQuestions(parts: AdminParts): ReplicaQuestions | undefined {
  const { core, config, clock, random, opened, logger } = parts;
  if (opened.kind === "memory") return undefined;
  const { background: connection } = opened.connections;
  const { keyPrefix } = config;
  const onUnreadable = (): void => {
    const event = { event: "replicaQuestionUnreadable" };
    logger.warn(event, "A question of another replica is none, or of another version: left out.");
  };
  const { replica } = core;
  return new ReplicaQuestions({ connection, clock, random, keyPrefix, replica, onUnreadable });
}

function createServices(
  parts: AdminParts,
  questions: ReplicaQuestions | undefined,
): AdminServiceParts {
  const { core, config, clock, random, policies, opened, operator, replicaCount } = parts;
  const { liveCount } = parts;
  const { decider, counters, replica, operations, seen } = core;
  const { overrides, records } = operator;
  const { store } = opened;
  const explainer = new Explainer({
    switches: switchesOf(config),
    digest: sha256,
    peekedRules: (policy) => decider.peekedRules(policy),
  });
  const { feed } = policies;
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
    readCandidate: (files) => readCandidate(files, parts),
    fleet: createFleetView({
      replica,
      policies: feed,
      loop: () => core.loop.status,
      plane: core.control,
      admission: core.admission,
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
    policyAdministration: operations.policyAdmin,
    gates: operations.gateAdmin,
    quotas: core.quotas,
    ...(questions === undefined
      ? {}
      : { replicas: { liveCount, put: (question) => questions.put(question) } }),
  };
}

/** Reads a policy as the active one would be. */
async function readCandidate(
  files: readonly PolicyFile[],
  { clock, policies, parser }: Pick<AdminParts, "clock" | "policies" | "parser">,
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
