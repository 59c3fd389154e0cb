/** A policy of services, each written as a map in braces, beside a limit by user of "shop". */
export function policyOf(...services: readonly string[]): string {
  return [
    "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}",
    "spec:",
    "  rateLimits:",
    "    - domain: shop",
    "      descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]",
    "  services:",
    ...services.map((service) => `    - ${service}`),
    "",
  ].join("\n");
}

/** A policy of one service that has a gate. */
export const gatePolicyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: orders
      hosts: [orders.example]
      admission:
        maxInFlight: 10
        queue: {size: 20}
        estimatedWait: {sigmoid: {midpoint: 1s, slope: 5}}
        gate: {}
`;
