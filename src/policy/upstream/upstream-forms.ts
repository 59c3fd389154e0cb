import {
  any,
  duration,
  flag,
  list,
  map,
  mapForm,
  number,
  orOff,
  row,
  text,
  whole,
  words,
  written,
} from "../text/form.js";
import { percentBounds, permitBounds, positivePercentBounds } from "../text/quantities.js";
import { headerPattern } from "../text/service-texts.js";
import { keyRule } from "../text/text-rules.js";
import { measureBounds } from "./adaptive-concurrency.js";
import { aggressionBounds, samplingBounds, successBounds } from "./admission-control.js";
import { autoWord, retryBounds, thresholdBounds } from "./circuit-breakers.js";
import {
  defaultAdaptiveConcurrency as adaptive,
  defaultCircuitBreakers as breakers,
  defaultAdmissionControl as control,
  defaultFailurePercentage,
  defaultHealthChecks,
  defaultLocalRateLimit,
  defaultMinRtt,
  defaultSlowStart,
  defaultSuccessRate,
  defaultZoneAware,
  defaultOutlierDetection as outliers,
} from "./default-upstream.js";
import { expectedStatusBounds, expectedStatusesMax, healthPathPattern } from "./health-checks.js";
import { cookiePattern, weightBounds } from "./load-balancing.js";
import { fillBounds, protectionTimes } from "./local-rate-limit.js";
import { deviationsBounds, ejectionTimeBounds, failureBounds } from "./outlier-detection.js";
import { requestTimeBounds, tryTimeBounds } from "./retries.js";
import {
  adaptiveConcurrencyShape,
  admissionControlShape,
  circuitBreakersShape,
  consistentHashShape,
  failurePercentageShape,
  grpcHealthShape,
  hashCookieShape,
  healthChecksShape,
  httpHealthShape,
  loadBalancingShape,
  localRateLimitShape,
  minRttShape,
  outlierDetectionShape,
  perEndpointShape,
  retryBudgetShape,
  slowStartShape,
  successRateShape,
  zoneAwareShape,
} from "./upstream-shapes.js";

const retryBudget = mapForm(
  { shape: retryBudgetShape, docs: "How many of the requests in work may be retries." },
  {
    percent: row(
      number(positivePercentBounds),
      "Percent of the requests in work.",
      breakers.retryBudget.percent,
    ),
    minRetries: row(
      whole(retryBounds),
      "Retries that are let through whatever the percentage says.",
      breakers.retryBudget.retriesMin,
    ),
  },
);

const perEndpoint = mapForm(
  { shape: perEndpointShape, docs: "What one proxy may have open to each host of a service." },
  { maxConnections: row(whole(thresholdBounds), "Connections. Left out: no bound of its own.") },
);

/** `circuitBreakers`. */
export const circuitBreakersForm = mapForm(
  {
    shape: circuitBreakersShape,
    docs: "Envoy's circuit breakers: what one proxy may have open to the service.",
    exclusive: [],
  },
  {
    maxConnections: row(whole(thresholdBounds), "Connections.", breakers.connectionsMax),
    maxPendingRequests: row(
      whole(thresholdBounds),
      "Requests that wait for a connection.",
      breakers.pendingRequestsMax,
    ),
    maxRequests: row(
      any(words(autoWord), whole(thresholdBounds)),
      "Requests in work; `auto`: this proxy's part of the service's limit, as Headgate drives it.",
      autoWord,
    ),
    maxRetries: row(
      whole(retryBounds),
      "Retries in work, instead of a retry budget.",
      breakers.retriesMax,
    ),
    retryBudget: row(orOff(retryBudget), "How many of the requests in work may be retries."),
    perEndpoint: row(map(perEndpoint), "What one proxy may have open to each host of it."),
  },
);

const successRate = mapForm(
  { shape: successRateShape, docs: "Ejects hosts whose success is far below the others'." },
  {
    minHosts: row(
      whole(thresholdBounds),
      "Hosts with enough requests before any is judged.",
      defaultSuccessRate.hostsMin,
    ),
    minRequests: row(
      whole(thresholdBounds),
      "Requests of a host in an interval before it is judged.",
      defaultSuccessRate.requestsMin,
    ),
    deviations: row(
      number(deviationsBounds),
      "Standard deviations below the mean.",
      defaultSuccessRate.deviations,
    ),
  },
);

const failurePercentage = mapForm(
  { shape: failurePercentageShape, docs: "Ejects hosts of which too large a part fails." },
  {
    threshold: row(
      whole(failureBounds),
      "Percent of a host's requests in an interval.",
      defaultFailurePercentage.thresholdPercent,
    ),
    minHosts: row(
      whole(thresholdBounds),
      "Hosts with enough requests before any is judged.",
      defaultFailurePercentage.hostsMin,
    ),
    minRequests: row(
      whole(thresholdBounds),
      "Requests of a host in an interval before it is judged.",
      defaultFailurePercentage.requestsMin,
    ),
  },
);

/** `outlierDetection`. */
export const outlierDetectionForm = mapForm(
  { shape: outlierDetectionShape, docs: "When a host that fails is left out for a while." },
  {
    consecutive5xx: row(
      whole(thresholdBounds),
      "Answers of 5xx, one after the other, that eject a host.",
      outliers.consecutive5xx,
    ),
    consecutiveGatewayFailure: row(
      whole(thresholdBounds),
      "Answers of 502, 503 or 504, one after the other, that eject a host.",
      outliers.consecutiveGatewayFailures,
    ),
    interval: row(
      duration(ejectionTimeBounds),
      "Time between two looks at the hosts.",
      written(outliers.intervalMs),
    ),
    baseEjectionTime: row(
      duration(ejectionTimeBounds),
      "How long a host is out for the first time; longer each time.",
      written(outliers.baseEjectionMs),
    ),
    maxEjectionTime: row(
      duration(ejectionTimeBounds),
      "The longest that a host is out.",
      written(outliers.ejectionMsMax),
    ),
    maxEjectionPercent: row(
      whole({ min: percentBounds.min, max: percentBounds.max }),
      "Percent of the hosts that may be out at once.",
      outliers.ejectionPercentMax,
    ),
    successRate: row(map(successRate), "Also judges hosts by their success. Left out: not."),
    failurePercentage: row(
      map(failurePercentage),
      "Also judges hosts by the part that fails. Left out: not.",
    ),
    consecutiveLocalOriginFailure: row(
      whole(thresholdBounds),
      "Connections and time-outs that failed in a row. Left out: they count as answers of 5xx.",
    ),
  },
);

const httpHealth = mapForm(
  {
    shape: httpHealthShape,
    docs: "A GET, and the statuses of a host that is well.",
    required: ["path"],
  },
  {
    path: row(text({ charsMax: 1_024 }, healthPathPattern), "What is asked for."),
    host: row(text({ charsMax: 253 }), "Its host. Usually the service's first, else its address."),
    expectedStatuses: row(
      list(whole(expectedStatusBounds), expectedStatusesMax),
      "Statuses of a host that is well. Usually 200.",
    ),
  },
);

const grpcHealth = mapForm(
  { shape: grpcHealthShape, docs: "A call of grpc.health.v1.Health." },
  { serviceName: row(text({ charsMax: 256 }), "Of which service. Left out: the whole server.") },
);

const checks = defaultHealthChecks;

/** `healthChecks`. */
export const healthChecksForm = mapForm(
  {
    shape: healthChecksShape,
    docs: "How each proxy asks hosts whether they are well: {} by a connection.",
    exclusive: [["http", "grpc"]],
  },
  {
    http: row(map(httpHealth), "By HTTP."),
    grpc: row(map(grpcHealth), "By gRPC."),
    timeout: row(duration(tryTimeBounds), "How long a check may take.", written(checks.timeoutMs)),
    interval: row(duration(tryTimeBounds), "Time between two.", written(checks.intervalMs)),
    unhealthyThreshold: row(
      whole(thresholdBounds),
      "Failures in a row that leave a host out.",
      checks.unhealthyThreshold,
    ),
    healthyThreshold: row(
      whole(thresholdBounds),
      "Successes in a row that bring it back.",
      checks.healthyThreshold,
    ),
  },
);

const cookie = mapForm(
  { shape: hashCookieShape, docs: "A cookie, made where it is not there.", required: ["name"] },
  {
    name: row(text({ charsMax: 128 }, cookiePattern), "Its name."),
    ttl: row(duration(requestTimeBounds), "How long it lasts; 0s: for the session.", "0s"),
  },
);

const consistentHash = mapForm(
  {
    shape: consistentHashShape,
    docs: "Requests that are alike in this go to one host, as long as it is there.",
    needed: [["header", "cookie", "queryParameter", "sourceIp"]],
    exclusive: [["header", "cookie", "queryParameter", "sourceIp"]],
  },
  {
    header: row(text({ charsMax: 128 }, headerPattern), "A header's name."),
    cookie: row(map(cookie), "A cookie."),
    queryParameter: row(text(keyRule), "A query parameter's name."),
    sourceIp: row(flag, "The caller's address."),
  },
);

const slowStart = mapForm(
  { shape: slowStartShape, docs: "Hosts that are new get less, and more by and by." },
  {
    window: row(duration(tryTimeBounds), "How long.", written(defaultSlowStart.windowMs)),
    minWeightPercent: row(
      whole(weightBounds),
      "Percent of its part that a host gets at first.",
      defaultSlowStart.weightPercentMin,
    ),
  },
);

const zoneAware = mapForm(
  {
    shape: zoneAwareShape,
    docs: "Hosts of the proxy's own zone come first, as far as they can take its part.",
  },
  {
    minClusterSize: row(
      whole(thresholdBounds),
      "Hosts of the service below which zones are not looked at.",
      defaultZoneAware.clusterSizeMin,
    ),
  },
);

/** `loadBalancing`. */
export const loadBalancingForm = mapForm(
  {
    shape: loadBalancingShape,
    docs: "How hosts are chosen: the less busy of two, where nothing else is said.",
    exclusive: [
      ["consistentHash", "slowStart"],
      ["consistentHash", "zoneAware"],
    ],
  },
  {
    healthyPanicThreshold: row(
      whole({ min: percentBounds.min, max: percentBounds.max }),
      "Percent of healthy hosts below which all get requests; 0: never. Left out: Envoy's 50, " +
        "Istio's 0.",
    ),
    consistentHash: row(map(consistentHash), "Requests that are alike go to one host."),
    slowStart: row(map(slowStart), "New hosts get less at first. Left out: not."),
    zoneAware: row(map(zoneAware), "Hosts of the same zone come first. Left out: not."),
  },
);

const when = (usual: string) =>
  row(
    words(...protectionTimes),
    "`withoutHeadgate`: acts only while no Headgate renews the proxy's runtime.",
    usual,
  );

/** `localRateLimit`. */
export const localRateLimitForm = mapForm(
  {
    shape: localRateLimitShape,
    docs: "A token bucket in each proxy: the backstop of global limits.",
    required: ["requests"],
  },
  {
    requests: row(whole(thresholdBounds), "Requests that an interval lets pass in one proxy."),
    per: row(duration(fillBounds), "The interval.", written(defaultLocalRateLimit.perMs)),
    burst: row(
      whole(thresholdBounds),
      "How many may come at once, at least `requests`. Usually as many.",
    ),
    when: when(defaultLocalRateLimit.when),
  },
);

const minRtt = mapForm(
  {
    shape: minRttShape,
    docs: "The round trip without load: fixed, or sampled from time to time.",
    exclusive: [
      ["fixed", "interval"],
      ["fixed", "requestCount"],
      ["fixed", "jitterPercent"],
    ],
  },
  {
    fixed: row(duration(measureBounds), "Never measured; what Headgate drives needs it."),
    interval: row(
      duration(measureBounds),
      "Time between two measurements.",
      written(defaultMinRtt.everyMs),
    ),
    requestCount: row(
      whole(thresholdBounds),
      "Requests of a measurement.",
      defaultMinRtt.requestCount,
    ),
    jitterPercent: row(
      number(percentBounds),
      "Percent of the interval that a measurement may come later.",
      defaultMinRtt.jitterPercent,
    ),
    bufferPercent: row(
      number(percentBounds),
      "Percent added to what was measured.",
      defaultMinRtt.bufferPercent,
    ),
  },
);

/** `adaptiveConcurrency`. */
export const adaptiveConcurrencyForm = mapForm(
  { shape: adaptiveConcurrencyShape, docs: "Envoy's own gradient controller, in each proxy." },
  {
    maxLimit: row(whole(permitBounds), "The highest limit.", adaptive.limitMax),
    minLimit: row(whole(permitBounds), "The lowest limit.", adaptive.limitMin),
    percentile: row(
      number(positivePercentBounds),
      "Which latency is looked at.",
      adaptive.percentile,
    ),
    updateInterval: row(
      duration(measureBounds),
      "Time between two limits.",
      written(adaptive.updateMs),
    ),
    minRtt: row(map(minRtt), "The round trip without load. Usually sampled."),
  },
);

/** `admissionControl`. */
export const admissionControlForm = mapForm(
  {
    shape: admissionControlShape,
    docs: "Envoy's admission control: refuses on the caller's side while too much fails.",
  },
  {
    aggression: row(
      number(aggressionBounds),
      "How much is refused for the same failures.",
      control.aggression,
    ),
    successRateThreshold: row(
      number(successBounds),
      "Percent of success that is good enough.",
      control.successRateThresholdPercent,
    ),
    samplingWindow: row(
      duration(samplingBounds),
      "How long is looked back, in whole seconds.",
      written(control.samplingWindowMs),
    ),
    minRequestsPerSecond: row(
      whole(retryBounds),
      "Below so many requests a second nothing is refused.",
      control.requestsPerSecondMin,
    ),
    maxRejectPercent: row(
      number(percentBounds),
      "Never more percent are refused.",
      control.rejectPercentMax,
    ),
    when: when(control.when),
  },
);
