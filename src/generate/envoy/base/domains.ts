import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import type { EnvoyContext } from "./context.js";

/**
 * Returns the hosts of each service's virtual host, in the order of the services. Ports are
 * ignored. Reports a host that two services claim, because a proxy could not distinguish them.
 *
 * - For the one service of a sidecar: all hosts.
 * - At the edge: the policy's `hosts`, or the name. All hosts if the only service has no `hosts`.
 * - In a caller's sidecar: also the names by which services call each other.
 */
export function serviceDomains(
  services: readonly ServicePolicy[],
  context: EnvoyContext,
): readonly (readonly string[])[] {
  const { role, side } = context;
  const isOwn = role === "sidecar" && side === "inbound";
  const [only, ...others] = services;
  const isAlone = side === "inbound" && others.length === 0 && only?.hosts.length === 0;
  if (isOwn || isAlone) return services.map(() => ["*"]);
  const claimed = services.map((service) =>
    side === "outbound" ? callDomains(service) : edgeDomains(service),
  );
  const owners = new Map<string, ServicePolicy>();
  services.forEach((service, index) => {
    for (const domain of claimed[index] ?? []) {
      const other = owners.get(domain);
      if (other === undefined) owners.set(domain, service);
      else reportTwice(domain, { service, other, context });
    }
  });
  return claimed;
}

interface Claim {
  readonly service: ServicePolicy;
  readonly other: ServicePolicy;
  readonly context: EnvoyContext;
}

function reportTwice(domain: string, { service, other, context }: Claim): void {
  context.report({
    id: "HG303",
    spot: { service: service.name, path: ["hosts"] },
    message: `its host ${domain} also belongs to the service ${other.name}`,
    hint: "give one of the two its own hosts; ports do not distinguish services",
  });
}

function edgeDomains({ name, hosts }: ServicePolicy): readonly string[] {
  return hosts.length > 0 ? hosts : [name];
}

function callDomains({ name, namespace, hosts, upstream }: ServicePolicy): readonly string[] {
  const inside = namespace === undefined ? [] : [`${name}.${namespace}`];
  const addresses = upstream === undefined || isAddress(upstream.address) ? [] : [upstream.address];
  return [...new Set([name, ...inside, ...addresses.map((text) => text.toLowerCase()), ...hosts])];
}

/** Reports whether a text is an IP address and not a name. */
export function isAddress(text: string): boolean {
  return text.includes(":") || /^[\d.]+$/.test(text);
}
