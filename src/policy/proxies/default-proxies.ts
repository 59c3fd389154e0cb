/**
 * Defaults of all fields of `proxies`, for a policy without it. Plain data, so that a service can
 * start without their readers.
 */
export const defaultProxies = {
  expectedCount: 1,
  headgate: {
    address: "headgate.headgate.svc.cluster.local",
    port: 8_081,
    controlPort: 18_000,
    rateLimitTimeoutMs: 20,
    deniesWithoutAnswer: false,
    tls: undefined,
  },
  listener: {
    address: "0.0.0.0",
    port: 10_000,
    outboundPort: 10_001,
    adminPort: 9_901,
    statisticsPort: 9_902,
    connectionsMax: 10_000,
    concurrentStreamsMax: 100,
    trustedHops: 0,
    requestHeadersKibMax: undefined,
    headersCountMax: undefined,
    maxConnectionMs: undefined,
    escapedSlashes: undefined,
    tls: undefined,
    http3: undefined,
  },
  gateway: { name: undefined, namespace: undefined, labels: undefined, listeners: undefined },
  tcpListeners: [],
  overload: undefined,
  adaptiveConcurrency: undefined,
  admissionControl: undefined,
  runbookUrl: undefined,
  secretsFolder: undefined,
} as const;
