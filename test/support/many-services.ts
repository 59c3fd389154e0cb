/** A policy of services that have a bit of everything that grows with their number. */
export function manyServices(count: number): string {
  const services = Array.from({ length: count }, (_, index) => [
    `    - name: service-${index}`,
    "      namespace: shop",
    `      hosts: [service-${index}.example.com]`,
    `      upstream: {address: service-${index}.shop.svc.cluster.local, port: 8080}`,
    `      clusters: ["inbound|${10_000 + index}||", httproute/shop/service-${index}/rule/0]`,
    "      rateLimit:",
    "        domain: shop",
    "        descriptors: [[{header: x-user, as: user}]]",
    "      priority: {authPaths: [/login], bypassPaths: [/healthz]}",
    "      admission: {maxInFlight: 200, shedAt: usual}",
    "      concurrency:",
    "        law: gradient",
    "        limits: {initial: 50, min: 10, max: 400}",
    "        feedback: [circuitBreakers]",
    "      localRateLimit: {requests: 500}",
    "      circuitBreakers: {retryBudget: off}",
  ]);
  return [
    ...["apiVersion: headgate.dev/v1alpha1", "kind: Policy", "metadata: {name: shop}", "spec:"],
    "  rateLimits:",
    "    - domain: shop",
    "      descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 100}}]",
    ...["  proxies:", "    expected: 4"],
    "    gateway: {listeners: [{name: http, port: 80}, {name: https, port: 443}]}",
    ...["  services:", ...services.flat(), ""],
  ].join("\n");
}
