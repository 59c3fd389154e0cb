import { quoteText } from "../../../policy/problems/problem.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { softAnswers } from "../../../policy/services/soft-answers.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { EnvoyContext } from "../base/context.js";
import { isAskedHere } from "../base/sides.js";

/**
 * Returns routes to the clusters to which limits and budgets redirect a service's requests. They
 * precede all other routes, and match Headgate's metadata, which callers cannot set.
 */
export function fallbackRoutes(
  service: ServicePolicy,
  context: EnvoyContext,
  action: TreeMap,
): readonly Tree[] {
  if (!isAskedHere(context)) return [];
  return reachedClusters(service, context).map((cluster, index) =>
    noted("Requests that Headgate sends elsewhere.", {
      name: `${service.name}-fallback-${index + 1}`,
      match: {
        prefix: "/",
        dynamic_metadata: [
          {
            filter: "headgate",
            path: [{ key: "fallback" }],
            value: { string_match: { exact: cluster } },
          },
        ],
      },
      route: { cluster, ...action },
    }),
  );
}

function reachedClusters(service: ServicePolicy, context: EnvoyContext): readonly string[] {
  const { clusters } = softAnswers(context.policy)(service);
  if (context.isWhole !== true) return clusters;
  return clusters.filter((cluster) => {
    if (context.policy.services.some(({ name }) => name === cluster)) return true;
    context.report({
      id: "HG326",
      spot: { service: service.name, path: [] },
      message: `its sidecar has no cluster ${quoteText(cluster)} to which requests fall back`,
      hint: "generate an edge proxy or fragments, or fall back by a header that the service reads",
    });
    return false;
  });
}
