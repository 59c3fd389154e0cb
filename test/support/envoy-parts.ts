import type { Tree } from "../../src/generate/base/document.js";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { rated } from "../../src/generate/base/generate-problems.js";
import type { GenerateProblem } from "../../src/generate/base/generator.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { checkMessage } from "../../src/generate/check/check-message.js";
import type { EnvoyContext } from "../../src/generate/envoy/base/context.js";
import type { BudgetPolicy } from "../../src/policy/budgets/budget-policy.js";
import { defaultProxies } from "../../src/policy/proxies/default-proxies.js";
import type { ProxyPolicy } from "../../src/policy/proxies/proxies.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import type { RoomPolicy } from "../../src/policy/waiting-rooms/room-policy.js";
import { testService } from "./admission.js";
import { readEnvoyApi } from "./envoy-api.js";

/** What a test says of a proxy; everything else is usual. */
export interface TestProxy {
  readonly services?: readonly ServicePolicy[];
  readonly waitingRooms?: readonly RoomPolicy[];
  readonly budgets?: readonly BudgetPolicy[];
  readonly proxies?: Partial<ProxyPolicy>;
  /** The minor version of Envoy. Default 40. */
  readonly minor?: number;
  readonly role?: EnvoyContext["role"];
  readonly side?: EnvoyContext["side"];
}

/** What the parts of a proxy are made from, and what they report. */
export interface TestContext {
  readonly context: EnvoyContext;
  readonly problems: readonly GenerateProblem[];
}

/** Makes one: an edge proxy of one service that has nothing. */
export function testContext(proxy: TestProxy = {}): TestContext {
  const { services = [testService(undefined)], proxies = {}, minor = 40 } = proxy;
  const problems: GenerateProblem[] = [];
  const context: EnvoyContext = {
    policy: {
      name: "tests",
      hash: "0123456789ab",
      texts: [],
      domains: ["edge"],
      rules: [],
      quotas: [],
      waitingRooms: proxy.waitingRooms ?? [],
      budgets: proxy.budgets ?? [],
      services,
      proxies: { ...defaultProxies, ...proxies },
    },
    options: { ...defaultGenerateOptions, envoyVersion: { major: 1, minor } },
    role: proxy.role ?? "edge",
    side: proxy.side ?? "inbound",
    headgateClusters: {
      decisions: "headgate",
      control: "headgate_control",
      quotas: "headgate_control",
    },
    report: (problem) => problems.push(rated(problem)),
  };
  return { context, problems };
}

/** A tree without comments; undefined stays. */
export function plain(tree: Tree | undefined): unknown {
  return tree === undefined ? undefined : plainTree(tree);
}

/** The `typed_config` of an HTTP filter, without comments and type. */
export function filterFields(filter: Tree | undefined): Readonly<Record<string, unknown>> {
  const { typed_config: config = {} } = (plain(filter) ?? {}) as {
    typed_config?: Readonly<Record<string, unknown>>;
  };
  const { "@type": _type, ...fields } = config;
  return fields;
}

const envoyApi = readEnvoyApi();

/** What Envoy's API finds wrong with a message, as texts; it also says which message it is. */
export function apiProblems(message: string, tree: Tree | undefined): readonly string[] {
  if (tree === undefined) return [`there is no ${message}`];
  const { problems } = checkMessage({ message, value: plainTree(tree), path: [] }, envoyApi);
  return problems.map(({ path, message: words }) => `${path.join(".")}: ${words}`);
}
