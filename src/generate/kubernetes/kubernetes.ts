import { requestBytesFor } from "../../policy/cel/request-bytes.js";
import { type Document, noted, type Tree } from "../base/document.js";
import { rated } from "../base/generate-problems.js";
import type { Generated, GeneratedPolicy, GenerateOptions } from "../base/generator.js";
import { chartDocuments } from "./chart.js";
import { certificateFile, monitorFile, objectFiles } from "./objects.js";
import { policyFiles } from "./policy-files.js";
import { type PolicyNeeds, policyNeeds } from "./policy-needs.js";
import { manifestProblems } from "./policy-problems.js";
import { signalEgress } from "./signal-egress.js";
import { holds, type KubernetesValues, LiteralSource, valuesWith } from "./value-source.js";

/** Next to the chart, not around it: tools that read a folder accept only manifests in it. */
const plainFolder = "plain";

/** Ratio of the maximum to the minimum number of replicas. */
const replicasMaxFactor = 4;

/** The Secret with the keys that sign tickets, if a policy has waiting rooms. */
const roomsSecret = "headgate-waiting-rooms";

/** Prometheus server to query if a policy names none. */
const defaultPrometheusUrl = "http://prometheus.monitoring.svc.cluster.local:9090";

/** Generates plain manifests with a kustomization, an equal Helm chart, and Redis user rights. */
export function generateKubernetes(policy: GeneratedPolicy, options: GenerateOptions): Generated {
  const needs = policyNeeds(policy);
  const values = valuesOf(policy, options, needs);
  const problems = manifestProblems(policy, options, needs).map(rated);
  if (problems.some(({ severity }) => severity === "error")) return { documents: [], problems };
  const documents = [
    ...plainDocuments(options, values),
    ...chartDocuments(policy, values),
    ...(holds({ name: "redis.enabled" }, values) ? [redisUser(needs)] : []),
  ];
  return { documents, problems };
}

/** Returns the values that follow from a policy and a person's options. */
export function valuesOf(
  { texts, proxies }: GeneratedPolicy,
  { replicas, namespace, image }: GenerateOptions,
  needs: PolicyNeeds,
): KubernetesValues {
  const { port, controlPort, tls } = proxies.headgate;
  const ownHosts = ["headgate", "headgate-pods"].map(
    (name) => `${name}.${namespace}.svc.cluster.local`,
  );
  const serverName = tls?.serverName ?? "";
  const prometheus = needs.asksPrometheus ? defaultPrometheusUrl : "";
  const sources = [...(prometheus === "" ? [] : [prometheus]), ...needs.signalUrls];
  // A single replica counts alone. A second one without a store would admit twice as much.
  const isShared = needs.hasSharedState && replicas > 1;
  return valuesWith({
    ...(image && {
      "image.repository": image.repository,
      ...(image.tag === undefined ? {} : { "image.tag": image.tag }),
      "image.digest": image.digest ?? "",
    }),
    "replicas.min": replicas,
    "replicas.max": replicas * replicasMaxFactor,
    "autoscaling.enabled": isShared || !needs.hasSharedState,
    "redis.enabled": isShared || needs.signalKeys.length > 0,
    "waitingRooms.secretName": needs.hasRooms ? roomsSecret : "",
    "ports.grpc": port,
    "ports.control": controlPort,
    "controlPort.enabled": needs.hasControlPort,
    "tls.enabled": needs.servesTls,
    "tls.clientCertificates": needs.asksForCertificates,
    "tls.serverName": ownHosts.includes(serverName) ? "" : serverName,
    requestBytesMax: requestBytesFor(proxies.listener.requestHeadersKibMax),
    "networkPolicy.extraEgress": sources.map(signalEgress),
    prometheusUrl: prometheus,
    policy: policyFiles(texts),
  });
}

function plainDocuments(
  { namespace }: GenerateOptions,
  values: KubernetesValues,
): readonly Document[] {
  const source = new LiteralSource(namespace, values);
  const applied = objectFiles.filter(({ condition }) => !condition || holds(condition, values));
  const isTls = holds({ name: "tls.enabled" }, values);
  const beside = [monitorFile, ...(isTls ? [certificateFile] : [])];
  const written = objectFiles.filter((one) => applied.includes(one) || beside.includes(one.file));
  const names = ["namespace.yaml", ...applied.map(({ file }) => file)];
  return [
    kustomizationFile(names, values),
    namespaceFile(namespace),
    ...written.map(
      ({ file, title, build }): Document => ({
        path: `${plainFolder}/${file}`,
        kind: { format: "yaml", is: "kubernetes" },
        title,
        parts: build(source),
      }),
    ),
  ];
}

function kustomizationFile(names: readonly string[], values: KubernetesValues): Document {
  const secret = String(values.get("redis.secretName"));
  const needsRedis = holds({ name: "redis.enabled" }, values);
  const first = [
    "kubectl apply --server-side -k .",
    "Set your own image below, and label headgate.dev/client=true on the " +
      "namespaces whose proxies may call Headgate.",
  ];
  if (holds({ name: "tls.enabled" }, values)) {
    first.push(
      `It needs the Secret ${values.get("tls.secretName")} with \`tls.crt\`, ` +
        `\`tls.key\` and \`ca.crt\`. With cert-manager, ${certificateFile} creates ` +
        "it.",
    );
  }
  if (needsRedis) {
    first.push(
      `It needs a Redis. Put its address and user into the Secret ${secret}, as ` +
        "`url` and `auth` (../redis-user.txt creates the user).",
    );
  }
  if (holds({ name: "waitingRooms.secretName" }, values)) {
    first.push(`It needs the Secret ${values.get("waitingRooms.secretName")}: ${roomsSecretHint}`);
  }
  return {
    path: `${plainFolder}/kustomization.yaml`,
    kind: { format: "yaml", is: "values" },
    title: first.join("\n"),
    parts: [
      {
        apiVersion: "kustomize.config.k8s.io/v1beta1",
        kind: "Kustomization",
        resources: names.includes(monitorFile)
          ? names
          : noted(`With the Prometheus operator, also apply ${monitorFile}.`, names),
        images: [imageEntry(values)],
      },
    ],
  };
}

/** How to create the Secret, for people to read. */
const roomsSecretHint =
  "its `keys` sign the tickets of waiting rooms, and the first one of them the new ones.";

function imageEntry(values: KubernetesValues): Tree {
  const name = String(values.get("image.repository"));
  if (holds({ name: "image.digest" }, values)) {
    return { name, digest: String(values.get("image.digest")) };
  }
  const note =
    "A version instead of `latest`, so that a rollback works. `digest` pins the image exactly.";
  return noted(note, { name, newTag: String(values.get("image.tag")) });
}

function namespaceFile(namespace: string): Document {
  return {
    path: `${plainFolder}/namespace.yaml`,
    kind: { format: "yaml", is: "kubernetes" },
    title: "",
    parts: [
      {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: {
          name: namespace,
          labels: {
            "app.kubernetes.io/name": "headgate",
            "pod-security.kubernetes.io/enforce": noted(
              "Headgate needs no privileges, so the strictest standard applies here.",
              "restricted",
            ),
          },
        },
      },
    ],
  };
}

function redisUser({ signalKeys }: PolicyNeeds): Document {
  return {
    path: "redis-user.txt",
    kind: { format: "text" },
    title: "",
    parts: [redisUserCommand("headgate", signalKeys)],
  };
}

/** Prefix of all keys of Headgate. Default of CACHE_KEY_PREFIX. */
const keyPattern = "headgate:*";

/** Commands that Headgate and its scripts run: what they need, and no more. */
const rights =
  "+evalsha +script|load +time +mget +set +del +pexpire +zadd +zcard +zrem +zrange " +
  "+zrangebyscore +zremrangebyscore +hset +hget +hgetall +hdel +hlen +hincrby +lpush +ltrim " +
  "+lrange +hmget +bitfield +getrange +setrange +unlink +hrandfield +ping +client|setname";

/** Additional commands to read keys of others. */
const signalRights = "+type +get +strlen +llen";

/** Placeholder for a password's digest. Redis refuses it, so that no user gets a known password. */
const digestPlaceholder = "SHA256_OF_ITS_PASSWORD";

/**
 * Returns the command that creates a Redis user with least privilege. In a cluster the user also
 * needs `+cluster|slots +asking`, behind sentinels `+role`.
 *
 * @param signalKeys keys that the policy's signals are read from
 */
export function redisUserCommand(user: string, signalKeys: readonly string[]): string {
  const keys = [keyPattern, ...signalKeys.map(escapePattern)].map((key) => `~${key}`);
  const more = signalKeys.length === 0 ? "" : ` ${signalRights}`;
  return `ACL SETUSER ${user} on #${digestPlaceholder} ${keys.join(" ")} -@all ${rights}${more}`;
}

/**
 * Converts a key to a pattern that matches only it, unless this is impossible: a pattern cannot
 * contain spaces, and redis-cli interprets quotes, so any single character matches in their place.
 *
 * Source: Redis, "KEYS" (supported patterns) and ACL SETUSER.
 */
function escapePattern(key: string): string {
  return key.replaceAll(/[*?[\]\\^]/g, "\\$&").replaceAll(/[\s"']/g, "?");
}
