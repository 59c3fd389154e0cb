import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { isAtLeastVersion } from "../../src/generate/base/generate-options.js";
import { checkText } from "../../src/generate/check/check-text.js";
import { lintPolicy } from "../../src/generate/lint-policy.js";
import { watchedClusters } from "../../src/generate/observe/envoy-alerts.js";
import { readEnvoyApi } from "./envoy-api.js";
import { caseFiles, caseOptions, casePolicy, type GeneratedCase } from "./generated.js";

/**
 * What `check --envoy` finds in a translated bootstrap (with what Envoys read as they start) that
 * is ours: not of strangers, of routes that users write, or of what the policy itself asks for,
 * which a check of the policy says. What a translator writes by itself may be deprecated.
 */
export function ownFindings(bootstrap: unknown, given: GeneratedCase): readonly string[] {
  const policy = casePolicy(given);
  const { namespace, gatewayVersion } = caseOptions(given);
  const clusters = policy.services.flatMap((service) => watchedClusters(service, namespace));
  // A virtual host of Istio's callers is called by host and port; a gateway's by a user's host.
  const callers = policy.services.map(({ upstream: to }) => `${to?.address}:${to?.port}`);
  const routed = clusters.filter((name) => /^(outbound\||httproute\/)/.test(name));
  const owned = [...routed.map((name) => name.replace(/rule\/\d+$/, "rule/")), ...callers];
  const repeats = policy.services.flatMap(({ retries }) => retries?.on ?? []);
  const asked: readonly string[] = [
    ...lintPolicy(policy).map(({ id }) => id),
    // Envoy Gateway has a budget for them, and no words for how long they wait.
    ...(repeats.includes("gatewayError") ? ["HG424"] : []),
    // Its Envoys know no other way.
    ...(isAtLeastVersion(gatewayVersion, { major: 1, minor: 4 }) ? [] : ["HG433"]),
  ];
  const whole = withStart(bootstrap, given);
  return checkText(JSON.stringify(whole), readEnvoyApi()).flatMap(({ id, path, message }) => {
    const place = namesAlong(whole, path).join(" > ");
    const isOfNames = id === "HG423" || id === "HG424";
    const isOwn = owned.some((name) => place.includes(name)) || /^outbound.*headgate/.test(place);
    // What tests on a busy machine need.
    const isPatient = id === "HG431" && message === "timeout is 10s";
    if (isPatient || id === "HG457" || asked.includes(id) || (isOfNames && !isOwn)) return [];
    return [`${id} ${place}: ${message}`];
  });
}

/** The names of what a place is in, from the outside to the inside. */
function namesAlong(root: unknown, path: readonly (string | number)[]): readonly string[] {
  let at: unknown = root;
  return path.flatMap((step) => {
    at = Object(at)[step];
    const name: unknown = Object(at).name;
    return typeof name === "string" ? [name] : [];
  });
}

const bootstrapShape = z.looseObject({
  static_resources: z.looseObject({ clusters: z.array(z.json()).default([]) }).optional(),
});

const carrierShape = z.union([
  z
    .object({ spec: z.object({ bootstrap: z.object({ value: z.string() }) }) })
    .transform(({ spec }) => spec.bootstrap.value),
  z
    .object({ data: z.object({ "custom_bootstrap.json": z.string() }) })
    .transform(({ data }) => data["custom_bootstrap.json"]),
]);

type Bootstrap = z.infer<typeof bootstrapShape>;

/** What cases add, read once for all proxies of one. */
const starts = new WeakMap<GeneratedCase, Bootstrap>();

/** What an EnvoyProxy, or the ConfigMap of Istio's pods, adds to what is translated. */
function startOf(given: GeneratedCase): Bootstrap {
  const [start = {}] = [...caseFiles(given).values()]
    .flatMap((text) => parseAllDocuments(text))
    .flatMap((object) => carrierShape.safeParse(object.toJS()).data ?? [])
    .map((text) => bootstrapShape.parse(parse(text)));
  return start;
}

/** With what the objects of the case add to it. */
function withStart(bootstrap: unknown, given: GeneratedCase): unknown {
  const whole = bootstrapShape.parse(bootstrap);
  const start = starts.get(given) ?? startOf(given);
  starts.set(given, start);
  const clusters = start.static_resources?.clusters ?? [];
  const { static_resources: resources } = whole;
  return {
    ...whole,
    ...start,
    static_resources: { ...resources, clusters: [...(resources?.clusters ?? []), ...clusters] },
  };
}
