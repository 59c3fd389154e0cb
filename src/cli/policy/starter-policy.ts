/** What a first policy is about. */
interface Starter {
  readonly name: string;
  readonly service: string;
  readonly upstream: { readonly address: string; readonly port: string };
}

/** The text of a first policy: small, right, and with a word on each part. */
export function starterPolicy({ name, service, upstream }: Starter): string {
  const quoted = (text: string): string => (isPlain(text) ? text : JSON.stringify(text));
  return `# A policy of Headgate. \`headgate check\` says whether it is right; \`headgate schema\`
# gives editors what they need to complete and explain each name.
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: ${quoted(name)}}
spec:
  # Who may go: the language of envoyproxy/ratelimit. What a request is asked about stands at the
  # service below; what is not limited here passes.
  rateLimits:
    - domain: ${quoted(name)}
      descriptors:
        # Each client address by itself: 600 a minute, at most 100 at once.
        - key: remote_address
          rate_limit: {unit: minute, requests_per_unit: 600, burst: 100}

  # What protects each upstream service. A name is a whole service: the rest has usual values.
  services:
    - name: ${quoted(service)}
      # Values of \`:authority\` that mean it; left out, the route names the service.
      # hosts: [orders.example]
      upstream: {address: ${quoted(upstream.address)}, port: ${upstream.port}}
      rateLimit: {domain: ${quoted(name)}, descriptors: [[remote_address]]}
      # Sheds low classes first as the service fills, refuses what comes too late, and learns how
      # many requests may be in flight. Until \`dryRun\` goes, it counts and refuses nobody.
      admission: {dryRun: true}
      # Tries again what the service has surely not begun.
      # retries: {numRetries: 2}

  # Limits that proxies hold by themselves, without a call for each request: Headgate tells each
  # its part of the limit, by what it needs, and what callers use by RLS counts, too.
  # quotas:
  #   - name: tenants
  #     domain: ${quoted(name)}
  #     bucket: [{header: x-tenant, as: tenant}]
  #     rate: {hits: 1000, period: 1s, burst: 2000}

  # What holds for every proxy. How many share a limit while no Headgate tells them their part:
  proxies: {expected: 1}
`;
}

/** Whether YAML reads it as the text that it is. */
function isPlain(text: string): boolean {
  return /^[a-z][a-z0-9.-]*$/.test(text) && !/^(?:true|false|null|y|n|yes|no|on|off)$/.test(text);
}
