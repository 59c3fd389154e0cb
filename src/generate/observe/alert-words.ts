import type { AlertWords } from "./alert.js";
import { budgetAlertWords } from "./budget-alert-words.js";
import { roomAlertWords } from "./room-alert-words.js";

/**
 * All alerts that may be generated, with their sections of the runbook. A name never changes its
 * meaning. Names that begin with `Envoy` are about Envoy's own statistics.
 */
export const alertWords = {
  HeadgateAbsent: {
    severity: "critical",
    summary: "No replica of Headgate is scraped",
    means:
      "Prometheus sees no replica. Either none runs, and every Envoy decides by its failure " +
      "mode, or none is scraped, and no other alert can fire.",
    look: "Do pods exist, and are they ready? Which error does Prometheus report for its targets?",
    act: "Start replicas, or fix the scrape (ServiceMonitor, NetworkPolicy, port 8080).",
  },
  HeadgateReplicasMissing: {
    severity: "warning",
    summary: "Fewer replicas of Headgate are scraped than configured",
    means:
      "Some replicas are down. The others carry their load, and one more failure may be too " +
      "much.",
    look:
      "Pods that are pending, crashing or not ready; the last lines of their log; the " +
      "autoscaler.",
    act:
      "Bring the replicas back. If you want fewer, generate the alerts with that number of " +
      "--replicas.",
  },
  HeadgateStoreAway: {
    severity: "critical",
    summary: "{{ $labels.job }} does not use its store after repeated failures",
    means:
      "Limits answer by their on_store_failure. With local, each replica counts its part of " +
      "the limit by itself; the other limits allow, deny or fail.",
    look: "headgate_store_failures_total by error, the log line circuitOpened, Redis itself.",
    act:
      "Bring Redis back. For a wrong password, a missing right or a bad certificate, the " +
      "error code and the log say what to do. Limits are exact again within a second.",
  },
  HeadgateStoreFailing: {
    severity: "warning",
    summary: "Calls of {{ $labels.job }} to the store fail ({{ $labels.error }})",
    means: "Some calls to the store fail and others do not: it is slow, full, or failing over.",
    look: "The error in the label; latency, memory and failovers of the store; the network to it.",
    act: "Fix what the error names. Slow answers are cut off after 10 ms: is Redis close enough?",
  },
  HeadgateFailOpen: {
    severity: "critical",
    summary: "{{ $labels.job }} allows requests that it cannot count",
    means:
      "Limits with on_store_failure: allow are answered without the store, so they deny " +
      "nobody.",
    look: "HeadgateStoreAway and HeadgateOverloaded; headgate_fallback_decisions_total by error.",
    act: "Fix the store. If that is too permissive for these limits, set them to local.",
  },
  HeadgateFailClosed: {
    severity: "critical",
    summary: "{{ $labels.job }} denies requests because it cannot count them",
    means:
      "Limits with on_store_failure: deny are answered without the store, so they deny " +
      "everybody.",
    look: "HeadgateStoreAway and HeadgateOverloaded; headgate_fallback_decisions_total by error.",
    act: "Fix the store. If that is too strict for these limits, set them to local.",
  },
  HeadgateCountingAlone: {
    severity: "warning",
    summary: "Replicas of {{ $labels.job }} count by themselves",
    means:
      "Limits are answered without the store. Each replica enforces its part of the limit, " +
      "which is about right while callers spread over all replicas.",
    look: "HeadgateStoreAway, HeadgateStoreFailing and HeadgateOverloaded.",
    act: "Fix what they name. What was counted locally is not added up afterwards.",
  },
  HeadgateRegionUnreachable: {
    severity: "warning",
    summary: "{{ $labels.job }} cannot borrow from region {{ $labels.peer }}",
    means:
      "Every replica fails to reach the Redis of another region. Limits with spread: global " +
      "enforce this region's part of the rate, and what the other regions lend.",
    look:
      "The log lines regionLost and redisFailed with the region; its Redis; the network between " +
      "the regions.",
    act:
      "Restore the connection. Lending resumes by itself. If the region is gone for long, remove " +
      "it from HEADGATE_REGION_STORES in all regions, so that the others divide its part.",
  },
  HeadgatePolicyRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} rejects the newest policy and keeps the old one",
    means:
      "The files have a mistake. The old policy stays active, but a replica that restarts has " +
      "none.",
    look: "The log line policyRefused names file, line and column, and so does headgate check.",
    act: "Correct the file, or restore the version before.",
  },
  HeadgatePoliciesDiffer: {
    severity: "warning",
    summary: "Replicas of {{ $labels.job }} have different active policies",
    means:
      "One caller meets different limits at different replicas, for longer than an edit " +
      "takes.",
    look: "headgate_policy_info by version and instance; HeadgatePolicyRefused.",
    act:
      "Is the volume or the control plane of one replica behind? Restart it once the policy " +
      "is right.",
  },
  HeadgateOverloaded: {
    severity: "critical",
    summary: "{{ $labels.job }} is overloaded and skips the store ({{ $labels.cause }})",
    means:
      "Replicas have more work than they can do in time. Limits answer by their " +
      "on_store_failure, so that answers are not late.",
    look: "CPU and event loop of the replicas; requests in flight; which callers ask most.",
    act:
      "Add replicas or CPU. If only one replica is busy, check that calls spread over all of " +
      "them.",
  },
  HeadgateEventLoopLate: {
    severity: "warning",
    summary: "The event loop of {{ $labels.instance }} is late",
    means:
      "One turn in a hundred is more than 50 ms late, and its answers miss the 20 ms of " +
      "Envoy.",
    look: "CPU and throttling of the container; garbage collection; the size of the policy.",
    act: "Give it more CPU, without a limit that throttles it, or add replicas.",
  },
  HeadgateDecisionsSlow: {
    severity: "warning",
    summary: "1 % of the decisions of {{ $labels.job }} take too long",
    means:
      "An answer leaves after more than half of the time that Envoys wait. On a slow network " +
      "many arrive too late and count as failed.",
    look: "Latency of the store; HeadgateEventLoopLate; the panel of requests in each batch.",
    act: "Move the store closer, or give the replicas CPU.",
  },
  HeadgateBug: {
    severity: "critical",
    summary: "Calls to {{ $labels.job }} fail by a fault of the program",
    means: "An assertion failed. The call was answered with Internal, and the process goes on.",
    look: "The log line bug, with its stack.",
    act: "Report it with that line. If it began with a version, go back to the version before.",
  },
  HeadgateRequestsFail: {
    severity: "warning",
    summary: "{{ $labels.job }} answers 1 % of the requests with an error",
    means: "Envoy handles an error by its failure mode: unless it denies, these requests pass.",
    look: "headgate_failed_requests_total by error.",
    act:
      "For errors of the store see HeadgateStoreAway. For invalid requests, look at the Envoy " +
      "that sends them.",
  },
  HeadgateDomainUnknown: {
    severity: "warning",
    summary: "{{ $labels.job }} is asked for a domain that its policy does not have",
    means: "The filter of an Envoy names an unknown domain, and all its requests pass.",
    look: "Domains in the filters of Envoys, and those of the policy.",
    act: "Generate the Envoys' configuration from the policy, or add the domain.",
  },
  HeadgateKeysFlood: {
    severity: "warning",
    summary: "Too many new keys of rule {{ $labels.rule }} in {{ $labels.domain }}",
    means:
      "Callers bring more new values a second than the bound, so that further new ones share " +
      "one bucket. Often somebody makes up values.",
    look:
      "The panel Too many new keys of the domain's dashboard; access logs for the header " +
      "behind the key.",
    act: "Add a limit, before this rule, by something that a caller cannot choose.",
  },
  HeadgateNearLimit: {
    severity: "info",
    summary: "Most hits of rule {{ $labels.rule }} in {{ $labels.domain }} are near the limit",
    means: "Callers have little left. With somewhat more traffic they will be denied.",
    look: "The panel of the rule in the domain's dashboard; who the callers are.",
    act: "Raise the limit if that traffic is wanted. `headgate diff` says what an edit does.",
  },
  HeadgateOverLimit: {
    severity: "warning",
    summary: "10 % of the hits of rule {{ $labels.rule }} in {{ $labels.domain }} are denied",
    means: "For ten minutes the limit has denied more than a tenth of the hits.",
    look: "The domain's dashboard; whether few callers are denied or all of them.",
    act:
      "A few callers: that is what the limit is for. All: it is too small, or its key is too " +
      "coarse.",
  },
  HeadgateShadowOver: {
    severity: "info",
    summary: "In shadow mode, rule {{ $labels.rule }} in {{ $labels.domain }} would deny 10 %",
    means: "A limit in shadow mode denies nobody. Enforced, it would.",
    look: "The outcome shadow_over in the domain's dashboard.",
    act: "Change the number before you remove shadow_mode, or keep it if that is what you want.",
  },
  HeadgateCertificateExpires: {
    severity: "warning",
    summary: "The certificate of {{ $labels.job }} expires within a week",
    means:
      "The certificate of the gRPC port was not renewed. When it expires, Envoys cannot " +
      "connect.",
    look: "headgate_tls_certificate_expiry_timestamp_seconds; whatever renews certificates.",
    act: "Replace the files. They are read again at once.",
  },
  HeadgateCertificateExpired: {
    severity: "critical",
    summary: "The certificate of {{ $labels.job }} expires within a day, or has expired",
    means:
      "With an expired certificate Envoys cannot make new connections. Open ones go on for a " +
      "while.",
    look: "headgate_tls_certificate_expiry_timestamp_seconds; HeadgateCertificateRefused.",
    act: "Replace the files. They are read again at once.",
  },
  HeadgateCertificateRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} rejects its newest TLS files",
    means: "The files do not fit together or cannot be read. The old ones stay active.",
    look: "The log line tlsCertificateRefused says which file and why.",
    act: "Write a certificate and a key that belong together, both completely.",
  },
  HeadgateConnectionsRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} closes connections to its {{ $labels.port }} port",
    means:
      "One address has as many connections open as it may. Envoys behind the same address " +
      "(NAT, a load balancer) lose theirs as well.",
    look: "The log line connectionsRefused; which address has most connections to the port.",
    act:
      "Keep others from the port by a NetworkPolicy. If all of them are your Envoys, raise " +
      "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX.",
  },
  HeadgateClientsRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} rejects clients in their TLS handshake ({{ $labels.cause }})",
    means:
      "Envoys have no valid certificate and decide by their failure mode, or others try the " +
      "port.",
    look: "The cause in the label; the log line tlsRefused says what it means.",
    act: "Give your Envoys certificates of the right authority, and keep others from the port.",
  },
  HeadgateNamesRefused: {
    severity: "warning",
    summary: "A client of {{ $labels.job }} claims the name of an Envoy that is not its own",
    means:
      "Its certificate may not use the node id that it states, or another client owns that id " +
      "(see the cause). Two Envoys share an id, HEADGATE_CONTROL_NODES is wrong, or the " +
      "client lies.",
    look: "The log line controlStreamRefused, which has the identity; GET /debug/fleet.",
    act: "Give each Envoy an id of its own, correct the rules, or revoke that certificate.",
  },
  HeadgateControlPlaneAway: {
    severity: "warning",
    summary: "{{ $labels.job }} has no connection to its control plane",
    means: "The active policy stays active, but changes do not arrive.",
    look: "headgate_xds_disconnects_total by reason; the control plane itself.",
    act: "Bring it back. Headgate reconnects by itself.",
  },
  HeadgateCriticalRefused: {
    severity: "critical",
    summary: "Critical requests to {{ $labels.service }} are refused ({{ $labels.cause }})",
    means:
      "The service is so full that even critical requests are refused. All others are refused " +
      "before them.",
    look:
      "The service's dashboard: refusals by class and cause, limit and requests in flight, " +
      "the upstream.",
    act:
      "Give the service capacity or take load off it. If too much traffic is critical, change " +
      "its classes.",
  },
  HeadgateRefusesMuch: {
    severity: "warning",
    summary: "More than 10 % of the requests to {{ $labels.service }} are refused",
    means: "Admission protects the service from more than it can take.",
    look: "The service's dashboard: refusals by cause; latency and errors of the service.",
    act: "Scale the service, or find who sends so much. limits.max is the most that is admitted.",
  },
  HeadgateGateClosed: {
    severity: "critical",
    summary: "The gate of {{ $labels.service }} is closed",
    means: "The expected wait is so long that nearly no request is admitted.",
    look: "The service's dashboard: gate, expected wait, requests in flight.",
    act: "Check whether the service is stuck. The gate opens by itself when the queue is gone.",
  },
  HeadgateQueueWaits: {
    severity: "warning",
    summary: "More than 5 % of the queued requests wait long for {{ $labels.service }}",
    means:
      "Of the requests that were admitted from the queue, more than 5 % had waited over 100 " +
      "ms.",
    look: "The service's dashboard: capacity, waiting requests, and for a signal its reading.",
    act: "Is limits.min too small for the load, or the reading too high? See HeadgateLagCritical.",
  },
  HeadgateLimitAtFloor: {
    severity: "warning",
    summary: "The limit of {{ $labels.service }} is at its minimum",
    means: "The algorithm sees queueing or errors, however few requests it admits.",
    look: "The service's dashboard: latency, gradient; errors of the service.",
    act:
      "Look at the service. If it is healthy, limits.min is too large, or its latency has " +
      "changed.",
  },
  HeadgateLagCritical: {
    severity: "critical",
    summary: "The signal of {{ $labels.service }} is past critical for {{ $labels.key }}",
    means:
      "The reading, such as a consumer's lag, has passed `critical`, and the limit is " +
      "limits.min.",
    look:
      "The service's dashboard: reading and capacity, by key; the consumer that works off the " +
      "lag.",
    act:
      "Give the consumer more resources or instances. If it always falls behind, admit less: " +
      "set a smaller limits.max, or a lower target.",
  },
  HeadgateSignalMissing: {
    severity: "warning",
    summary: "No reading of the signal of {{ $labels.service }} is valid",
    means: "The source has not answered for staleAfter. The limit is what whenMissing says.",
    look: "headgate_signal_polls_total by outcome; the log line signalFailing.",
    act: "Fix the source, its address or its query.",
  },
  HeadgateRateLimitSkipped: {
    severity: "warning",
    summary: "Requests to {{ $labels.service }} pass because their rate limit cannot be asked",
    means: "Admission goes on without the rate limits of the service.",
    look: "HeadgateStoreAway; headgate_failed_requests_total by error.",
    act: "Fix the store, or what the errors name.",
  },
  HeadgateServiceUnknown: {
    severity: "warning",
    summary: "{{ $labels.job }} lets requests pass for services that its policy does not have",
    means: "An Envoy asks for admission to a service that is unknown.",
    look: "Names in the Envoys' ext_proc settings, and hosts of the policy.",
    act: "Generate the Envoys' configuration from the policy, or add the service.",
  },
  HeadgateStreamsFault: {
    severity: "warning",
    summary: "ext_proc streams to {{ $labels.job }} break the protocol ({{ $labels.fault }})",
    means:
      "An Envoy sends messages that the filter should not send with these settings. Its " +
      "requests pass.",
    look: "headgate_exchange_faults_total by fault; processing_mode of the filter.",
    act: "Generate the filter from the policy. Check the version of Envoy.",
  },
  HeadgateNoLeader: {
    severity: "critical",
    summary: "No replica of {{ $labels.job }} leads the fleet",
    means:
      "Nobody computes limits. Envoys keep theirs for HEADGATE_LAYER_TTL_MS (15 s), and then " +
      "use their configured limits.",
    look: "HeadgateStoreAway: without Redis nobody leads. The log line leaderChanged.",
    act: "Bring Redis back. A leader is elected within seconds.",
  },
  HeadgateSeveralLeaders: {
    severity: "warning",
    summary: "Several replicas of {{ $labels.job }} lead",
    means: "The replicas share no store: each is a fleet of its own and hands out the whole limit.",
    look: "REDIS_URL of each replica. With the memory store there can be only one replica.",
    act: "Give all replicas the same Redis.",
  },
  HeadgateFleetSnapshotStale: {
    severity: "critical",
    summary: "{{ $labels.instance }} has no new snapshot of limits",
    means:
      "What it sends to its Envoys is old. After HEADGATE_LAYER_TTL_MS (15 s) it sends " +
      "nothing.",
    look:
      "HeadgateNoLeader; headgate_fleet_failed_calls_total; the connection of the replica to " +
      "Redis.",
    act: "Fix its connection to Redis, or restart it.",
  },
  HeadgateQuotaLeasesLost: {
    severity: "critical",
    summary: "Replicas of {{ $labels.job }} hand out quotas without a lease",
    means:
      "The store has not answered for as long as a lease lasts. The limits' on_store_failure " +
      "decides what Envoys may let pass: at best each replica hands out its part of the " +
      "limit.",
    look:
      "HeadgateStoreAway; headgate_quota_failed_claims_total; the connections of the replicas " +
      "to Redis.",
    act: "Fix the connection to Redis. Leases come back by themselves.",
  },
  HeadgateQuotaReportsIgnored: {
    severity: "warning",
    summary: "Envoys report buckets that have no quota ({{ $labels.cause }})",
    means:
      "These buckets get no assignment. Their Envoys do what beforeAssignment says, which is " +
      "to let everything pass by default.",
    look: "The log line quotaBucketsIgnored; `headgate quotas --list`; the policy of the Envoys.",
    act: "Generate the Envoys' configuration from the active policy.",
  },
  HeadgateQuotaBucketsFlood: {
    severity: "warning",
    summary: "Quotas have more buckets than their bound ({{ $labels.bound }})",
    means:
      "Somebody makes up values, or a part of a bucket has too many of them. Buckets beyond " +
      "the bound get no share of their own.",
    look: "`headgate quotas`; which header the bucket is made of, and who may set it.",
    act: "Make buckets of what callers cannot choose, and limit rare values by RLS calls.",
  },
  HeadgateNoEnvoys: {
    severity: "warning",
    summary: "No Envoy gets limits from {{ $labels.job }}",
    means: "The policy shares limits among Envoys, but none is connected to the control port.",
    look: "Port 18000: Service, NetworkPolicy, TLS; headgate_control_failed_streams_total.",
    act:
      "Generate the Envoys' bootstraps from the policy, and fix their connection to the " +
      "control port.",
  },
  HeadgateEnvoyProblems: {
    severity: "warning",
    summary: "Envoys of {{ $labels.job }} have a problem: {{ $labels.problem }}",
    means: "Some Envoys have no id of their own, have another version, or reject their layer.",
    look: "GET /debug/fleet names them.",
    act: "Correct their bootstraps: an id each (--service-node), and generated from the policy.",
  },
  HeadgateServiceProblems: {
    severity: "warning",
    summary: "Services and clusters of {{ $labels.job }} do not match: {{ $labels.problem }}",
    means:
      "A service has no cluster in any Envoy, or two services claim one. Its limit is not " +
      "driven.",
    look: "GET /debug/fleet names services and clusters.",
    act: "Add the cluster's name to the service's `clusters`, or remove it from the other service.",
  },
  HeadgateLayersRefused: {
    severity: "warning",
    summary: "Envoys reject layers of {{ $labels.job }}",
    means: "An Envoy rejected the runtime layer that it was sent, and keeps the old one.",
    look: "GET /debug/fleet shows the Envoy and its message.",
    act: "Check the version of Envoy. If it is supported, report it.",
  },
  ...roomAlertWords,
  ...budgetAlertWords,
  EnvoyRateLimitFails: {
    severity: "critical",
    summary: "Envoys get no answer to rate limits of {{ $labels.envoy_cluster_name }}",
    means:
      "The calls of the filter fail or time out. Requests pass, or are denied if the policy " +
      "says failureModeDeny.",
    look: "HeadgateAbsent, HeadgateDecisionsSlow; the cluster `headgate` in Envoy's /clusters.",
    act: "Move Headgate closer, or give it CPU. `rateLimitTimeout` is how long Envoys wait.",
  },
  EnvoyAdmissionFails: {
    severity: "critical",
    summary: "Requests pass Envoys without a decision on admission",
    means: "ext_proc streams fail or answers come too late, and requests go on undecided.",
    look: "HeadgateAbsent, HeadgateStreamsFault; the cluster `headgate` in Envoy's /clusters.",
    act: "Fix the connection to Headgate. Meanwhile, local rate limits and breakers still hold.",
  },
  EnvoyCriticalOverflow: {
    severity: "critical",
    summary: "Envoys refuse critical requests to {{ $labels.envoy_cluster_name }}",
    means: "The circuit breaker at priority HIGH is open: there are too many critical requests.",
    look: "The service's dashboard: shares at HIGH, requests in flight; hosts that are ejected.",
    act: "Give the service capacity. Is too much of its traffic critical?",
  },
  EnvoyHostsEjected: {
    severity: "warning",
    summary: "Hosts of {{ $labels.envoy_cluster_name }} are ejected because they fail",
    means: "Outlier detection has ejected hosts for ten minutes, and the others carry their load.",
    look: "Envoy's /clusters names them; the log of these hosts.",
    act: "Replace the hosts that fail.",
  },
  EnvoyNoHealthyHosts: {
    severity: "critical",
    summary: "An Envoy has no healthy host for {{ $labels.envoy_cluster_name }}",
    means: "Its requests are answered with 503.",
    look: "Envoy's /clusters; the service's endpoints.",
    act: "Bring the service back, or correct its address.",
  },
  EnvoyOverloaded: {
    severity: "critical",
    summary: "{{ $labels.instance }} is out of memory and refuses requests",
    means: "Its overload manager has stopped accepting requests.",
    look: "The panel of pressure; memory of the process; large or many open requests.",
    act: "Give it memory (`overload.maxHeap`), or add Envoys.",
  },
} as const satisfies Record<string, AlertWords>;

/** Name of an alert. */
export type AlertName = keyof typeof alertWords;
