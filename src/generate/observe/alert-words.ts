import type { AlertWords } from "./alert.js";

/**
 * Every alert that may be generated, with its section of the runbook. A name keeps its meaning.
 * Those that begin with `Envoy` are about Envoy's own statistics.
 */
export const alertWords = {
  HeadgateAbsent: {
    severity: "critical",
    summary: "No Headgate is scraped",
    means:
      "Prometheus sees no replica. Either none runs, and every Envoy decides by its failure " +
      "mode, or none is scraped, and all other alerts are blind.",
    look: "Are there pods, and are they ready? Which error does Prometheus list for its targets?",
    act: "Start replicas, or mend the scrape (ServiceMonitor, NetworkPolicy, port 8080).",
  },
  HeadgateReplicasMissing: {
    severity: "warning",
    summary: "Fewer Headgates are scraped than there ought to be",
    means:
      "Replicas are away. The others carry their load; one more that fails may be one too many.",
    look: "Pods that are pending, crashing or not ready; their log's last lines; the autoscaler.",
    act: "Bring them back. If fewer are meant, generate the alerts with that number of --replicas.",
  },
  HeadgateStoreAway: {
    severity: "critical",
    summary: "{{ $labels.job }} leaves its store alone after repeated failures",
    means:
      "Limits are answered by their on_store_failure: local ones are counted by each replica by " +
      "itself, the others pass, are refused, or fail.",
    look: "headgate_store_failures_total by error, the log line circuitOpened, Redis itself.",
    act:
      "Bring Redis back. Wrong passwords, rights and certificates have errors of their own, and " +
      "the log says what to do. Decisions are well again within a second after it.",
  },
  HeadgateStoreFailing: {
    severity: "warning",
    summary: "Calls of {{ $labels.job }} to the store fail ({{ $labels.error }})",
    means: "Some calls fail and others do not: the store is slow, full, or moves.",
    look: "The error in the label; the store's latency, memory and failovers; the network between.",
    act: "Mend what the error names. Slow answers are cut off after 10 ms: is Redis near enough?",
  },
  HeadgateFailOpen: {
    severity: "critical",
    summary: "{{ $labels.job }} lets requests pass that it cannot count",
    means:
      "Limits with on_store_failure: allow are answered without the store, so nobody is refused " +
      "by them.",
    look: "HeadgateStoreAway and HeadgateOverloaded; headgate_fallback_decisions_total by error.",
    act: "Mend the store. If that is too open for these limits, let them say local.",
  },
  HeadgateFailClosed: {
    severity: "critical",
    summary: "{{ $labels.job }} refuses requests because it cannot count them",
    means: "Limits with on_store_failure: deny are answered without the store: all are refused.",
    look: "HeadgateStoreAway and HeadgateOverloaded; headgate_fallback_decisions_total by error.",
    act: "Mend the store. If that is too strict for these limits, let them say local.",
  },
  HeadgateCountingAlone: {
    severity: "warning",
    summary: "Replicas of {{ $labels.job }} count by themselves",
    means:
      "Limits are answered without the store, each replica with its part of the limit: about " +
      "right while callers spread over all replicas.",
    look: "HeadgateStoreAway, HeadgateStoreFailing and HeadgateOverloaded.",
    act: "Mend what they name; what was counted alone is not added up afterwards.",
  },
  HeadgatePolicyRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} refuses the newest policy and keeps the one before",
    means: "The files hold a mistake. The older policy goes on; a restarted replica has none.",
    look: "The log line policyRefused names file, line and column; so does headgate check.",
    act: "Correct the file, or put the one before back.",
  },
  HeadgatePoliciesDiffer: {
    severity: "warning",
    summary: "Replicas of {{ $labels.job }} have different active policies",
    means: "For longer than an edit takes to reach all, one caller meets different limits.",
    look: "headgate_policy_info by version and instance; HeadgatePolicyRefused.",
    act: "Is one replica's volume or control plane behind? Restart it once the policy is right.",
  },
  HeadgateOverloaded: {
    severity: "critical",
    summary: "{{ $labels.job }} has no time to ask the store ({{ $labels.cause }})",
    means:
      "Replicas are too busy and answer limits by their on_store_failure, so that answers come " +
      "in time at all.",
    look: "CPU and event loop of the replicas; requests in work; who asks so much.",
    act: "Add replicas or CPU. One busy replica alone: are calls spread over all of them?",
  },
  HeadgateEventLoopLate: {
    severity: "warning",
    summary: "The event loop of {{ $labels.instance }} is late",
    means: "One turn in a hundred comes more than 50 ms late: answers miss Envoy's 20 ms then.",
    look: "CPU and throttling of the container; garbage collection; the size of the policy.",
    act: "Give it more CPU, without a limit that throttles it, or add replicas.",
  },
  HeadgateDecisionsSlow: {
    severity: "warning",
    summary: "One decision of {{ $labels.job }} in a hundred takes too long",
    means:
      "More than half of the time that Envoys wait goes by before the answer leaves: on a slow " +
      "network many come too late, and count as failed.",
    look: "Latency of the store; HeadgateEventLoopLate; the panel of requests a batch.",
    act: "Bring the store nearer, or give the replicas CPU.",
  },
  HeadgateBug: {
    severity: "critical",
    summary: "Calls to {{ $labels.job }} fail by a fault of the program",
    means: "An assertion failed. The call was answered with Internal, the process goes on.",
    look: "The log line bug with its stack.",
    act: "Report it with that line. If it began with a version, go back to the one before.",
  },
  HeadgateRequestsFail: {
    severity: "warning",
    summary: "{{ $labels.job }} answers one request in a hundred with an error",
    means: "Envoy treats an error by its failure mode: unless it denies, these requests pass.",
    look: "headgate_failed_requests_total by error.",
    act: "Errors of the store: HeadgateStoreAway. Wrong requests: the Envoy that sends them.",
  },
  HeadgateDomainUnknown: {
    severity: "warning",
    summary: "{{ $labels.job }} is asked for a domain that its policy does not hold",
    means: "Some Envoy's filter names a domain that nobody knows: its requests all pass.",
    look: "Domains in the Envoys' filters beside those of the policy.",
    act: "Generate the Envoys' configuration from the policy, or add the domain.",
  },
  HeadgateKeysFlood: {
    severity: "warning",
    summary: "Too many new keys of rule {{ $labels.rule }} in {{ $labels.domain }}",
    means:
      "Callers bring more new values a second than are held, so that new ones share one bucket: " +
      "often somebody makes values up.",
    look: "The domain's dashboard, Too many new keys; access logs for the header behind the key.",
    act: "Limit by something that a caller cannot choose, before this rule.",
  },
  HeadgateNearLimit: {
    severity: "info",
    summary: "Most hits of rule {{ $labels.rule }} in {{ $labels.domain }} are near the limit",
    means: "Callers have little left. With some more traffic they will be refused.",
    look: "The domain's dashboard, panel of the rule; who the callers are.",
    act: "Raise the limit if they are meant to go on; `headgate diff` says what an edit does.",
  },
  HeadgateOverLimit: {
    severity: "warning",
    summary: "One hit in ten of rule {{ $labels.rule }} in {{ $labels.domain }} is refused",
    means: "For ten minutes a limit has refused more than a tenth of what was asked.",
    look: "The domain's dashboard; whether few callers or all of them are refused.",
    act: "Few: that is what the limit is for. All: it is too small, or the key is too coarse.",
  },
  HeadgateShadowOver: {
    severity: "info",
    summary: "The trial of rule {{ $labels.rule }} in {{ $labels.domain }} would refuse one in ten",
    means: "A limit in shadow mode refuses nobody; enforced, it would.",
    look: "The domain's dashboard, shadow_over.",
    act: "Change the number before shadow_mode goes, or leave it if that is what is wanted.",
  },
  HeadgateCertificateExpires: {
    severity: "warning",
    summary: "The certificate of {{ $labels.job }} expires within a week",
    means: "Nobody has renewed the gRPC port's certificate. After it Envoys cannot connect.",
    look: "headgate_tls_certificate_expiry_timestamp_seconds; whoever renews certificates.",
    act: "Write new files where the old ones are; they are read at once.",
  },
  HeadgateCertificateExpired: {
    severity: "critical",
    summary: "The certificate of {{ $labels.job }} expires within a day, or has",
    means: "New connections of Envoys fail with it; theirs that are open go on for a while.",
    look: "headgate_tls_certificate_expiry_timestamp_seconds; HeadgateCertificateRefused.",
    act: "Write new files where the old ones are; they are read at once.",
  },
  HeadgateCertificateRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} refuses its newest TLS files",
    means: "They do not fit together or cannot be read. The ones before are active.",
    look: "The log line tlsCertificateRefused says which file and why.",
    act: "Write certificate and key that belong together, both whole.",
  },
  HeadgateConnectionsRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} closes connections to its {{ $labels.port }} port",
    means:
      "One address has as many connections open as it may. Envoys behind the same address (NAT, " +
      "a load balancer) lose theirs with those of whoever opens too many.",
    look: "The log line connectionsRefused; which address has most connections to the port.",
    act:
      "Keep strangers from the port by a NetworkPolicy. If they are all your Envoys, raise " +
      "HEADGATE_CONNECTIONS_PER_ADDRESS_MAX.",
  },
  HeadgateClientsRefused: {
    severity: "warning",
    summary: "{{ $labels.job }} refuses clients in their TLS handshake ({{ $labels.cause }})",
    means:
      "Envoys have no certificate that is good here, and decide by their failure mode; or " +
      "strangers try the port.",
    look: "The cause in the label; the log line tlsRefused says what it means.",
    act: "Give your Envoys certificates of the right authority; keep others from the port.",
  },
  HeadgateNamesRefused: {
    severity: "warning",
    summary: "A client of {{ $labels.job }} speaks for an Envoy that it is not",
    means:
      "Its certificate may not have the node id that it states, or another client uses that id " +
      "(see the cause): two Envoys share one, HEADGATE_CONTROL_NODES is wrong, or it lies.",
    look: "The log line controlStreamRefused, which has the identity; GET /debug/fleet.",
    act: "Give each Envoy an id of its own, mend the rules, or revoke that certificate.",
  },
  HeadgateControlPlaneAway: {
    severity: "warning",
    summary: "{{ $labels.job }} has no connection to its control plane",
    means: "The active policy stays; changes to it do not arrive.",
    look: "headgate_xds_disconnects_total by reason; the control plane itself.",
    act: "Bring it back; the connection is tried again by itself.",
  },
  HeadgateCriticalRefused: {
    severity: "critical",
    summary: "Critical requests to {{ $labels.service }} are refused ({{ $labels.cause }})",
    means: "Even what is never to be turned away was: all others were refused before.",
    look: "The service's dashboard: refusals by class and cause, limit and in work, the upstream.",
    act: "Give the service room or take load off it. Too much is critical? Look at its classes.",
  },
  HeadgateRefusesMuch: {
    severity: "warning",
    summary: "More than a tenth of the requests to {{ $labels.service }} is refused",
    means: "Admission protects the service from more than it can take.",
    look: "The service's dashboard: refusals by cause; its latency and errors.",
    act: "Scale the service, or find who sends so much. limits.max is the most that is let in.",
  },
  HeadgateGateClosed: {
    severity: "critical",
    summary: "The gate of {{ $labels.service }} is closed",
    means: "The expected wait is so long that nearly nobody is let in.",
    look: "The service's dashboard: gate, expected wait, in work.",
    act: "Look at the service: is it stuck? The gate opens by itself when its queue is gone.",
  },
  HeadgateQueueWaits: {
    severity: "warning",
    summary: "More than one in twenty waits long for {{ $labels.service }}",
    means: "Of those who were let in from the queue, more than 5 % had waited for over 100 ms.",
    look: "The service's dashboard: capacity, waiting, and for a signal its reading.",
    act: "Is limits.min too small for the load, or the reading too high? See HeadgateLagCritical.",
  },
  HeadgateLimitAtFloor: {
    severity: "warning",
    summary: "The limit of {{ $labels.service }} has fallen to its least",
    means: "The law sees queueing or errors whatever it lets in.",
    look: "The service's dashboard: round trip, gradient; errors of the service.",
    act: "Look at the service. If it is well, limits.min is too large, or its latency has changed.",
  },
  HeadgateLagCritical: {
    severity: "critical",
    summary: "The signal of {{ $labels.service }} is past critical for {{ $labels.key }}",
    means: "The reading, such as a consumer's lag, has passed `critical`: limits.min holds.",
    look: "The service's dashboard: reading and capacity, by key; whatever works off the lag.",
    act:
      "Give the consumer more resources or more instances. If it falls behind all the time, less " +
      "is to be let in: a smaller limits.max, or an earlier target.",
  },
  HeadgateSignalMissing: {
    severity: "warning",
    summary: "No reading holds for {{ $labels.service }}",
    means: "Its source has not answered for staleAfter; the limit is where whenMissing says.",
    look: "headgate_signal_polls_total by outcome; the log line signalFailing.",
    act: "Mend the source, its address or its query.",
  },
  HeadgateRateLimitSkipped: {
    severity: "warning",
    summary: "Requests to {{ $labels.service }} pass because their rate limit cannot be asked",
    means: "Admission went on without the limits of the service.",
    look: "HeadgateStoreAway; headgate_failed_requests_total by error.",
    act: "Mend the store, or what the errors name.",
  },
  HeadgateServiceUnknown: {
    severity: "warning",
    summary: "{{ $labels.job }} lets requests pass for services that its policy does not have",
    means: "An Envoy asks for admission for a name that nobody knows.",
    look: "Names in the Envoys' ext_proc settings, and hosts of the policy.",
    act: "Generate the Envoys' configuration from the policy, or add the service.",
  },
  HeadgateStreamsFault: {
    severity: "warning",
    summary: "ext_proc streams to {{ $labels.job }} break the protocol ({{ $labels.fault }})",
    means: "An Envoy sends what its settings ought not to make it send; its requests pass.",
    look: "headgate_exchange_faults_total by fault; processing_mode of the filter.",
    act: "Generate the filter from the policy. Is it another version of Envoy?",
  },
  HeadgateNoLeader: {
    severity: "critical",
    summary: "No replica of {{ $labels.job }} leads the fleet",
    means:
      "Nobody computes limits. Envoys keep theirs for HEADGATE_LAYER_TTL_MS (15 s), then what " +
      "they are configured with.",
    look: "HeadgateStoreAway: with Redis down nobody leads. The log line leaderChanged.",
    act: "Bring Redis back; a leader is found within seconds.",
  },
  HeadgateSeveralLeaders: {
    severity: "warning",
    summary: "Several replicas of {{ $labels.job }} lead",
    means: "They share no store: each is a fleet of its own and hands out the whole limit.",
    look: "REDIS_URL of each replica; with the memory store there can be only one replica.",
    act: "Give all replicas one Redis.",
  },
  HeadgateFleetSnapshotStale: {
    severity: "critical",
    summary: "{{ $labels.instance }} has no new snapshot of limits",
    means:
      "What it hands to its Envoys is old; after HEADGATE_LAYER_TTL_MS (15 s) it hands out " +
      "nothing.",
    look: "HeadgateNoLeader; headgate_fleet_failed_calls_total; the replica's way to Redis.",
    act: "Mend its way to Redis, or restart it.",
  },
  HeadgateQuotaLeasesLost: {
    severity: "critical",
    summary: "Replicas of {{ $labels.job }} hand out quotas without a lease",
    means:
      "The store has not answered for as long as a lease lasts. The limits' on_store_failure " +
      "decides what Envoys may let pass: each replica hands out its part of the replicas at best.",
    look: "HeadgateStoreAway; headgate_quota_failed_claims_total; the replicas' way to Redis.",
    act: "Mend the way to Redis. Leases come back by themselves.",
  },
  HeadgateQuotaReportsIgnored: {
    severity: "warning",
    summary: "Envoys report buckets that have no quota ({{ $labels.cause }})",
    means:
      "Nothing is assigned to them: such a bucket stays at what its Envoy does before the first " +
      "assignment, which is to let everything pass unless the policy says otherwise.",
    look: "The log line quotaBucketsIgnored; `headgate quotas --list`; the Envoys' policy.",
    act: "Generate the Envoys' configuration from the policy that is active.",
  },
  HeadgateQuotaBucketsFlood: {
    severity: "warning",
    summary: "Quotas have more buckets than their bound ({{ $labels.bound }})",
    means:
      "Somebody makes up values, or a part of a bucket has too many. Those beyond the bound get " +
      "no share of their own.",
    look: "`headgate quotas`; which header the bucket is made of, and who may set it.",
    act: "Make buckets of what callers cannot choose; count the long tail by RLS calls.",
  },
  HeadgateNoEnvoys: {
    severity: "warning",
    summary: "No Envoy gets limits from {{ $labels.job }}",
    means: "The policy shares limits among Envoys, and none is connected to the control port.",
    look: "Port 18000: Service, NetworkPolicy, TLS; headgate_control_failed_streams_total.",
    act: "Generate the Envoys' bootstraps from the policy; mend the way to the control port.",
  },
  HeadgateEnvoyProblems: {
    severity: "warning",
    summary: "Something is wrong with Envoys of {{ $labels.job }}: {{ $labels.problem }}",
    means: "Envoys without an id of their own, of another version, or that refuse their layer.",
    look: "/debug/fleet names them.",
    act: "Correct the bootstraps: an id each (--service-node), and generated from the policy.",
  },
  HeadgateServiceProblems: {
    severity: "warning",
    summary: "Services of {{ $labels.job }} and clusters do not fit: {{ $labels.problem }}",
    means: "A service has no cluster in any Envoy, or two services claim one: it is not driven.",
    look: "/debug/fleet names services and clusters.",
    act: "Add the cluster's name to the service's `clusters`, or take it from the other.",
  },
  HeadgateLayersRefused: {
    severity: "warning",
    summary: "Envoys refuse layers of {{ $labels.job }}",
    means: "An Envoy did not take the runtime that it was sent, and keeps the one before.",
    look: "/debug/fleet: the Envoy and its words.",
    act: "Is it another version? Else report it.",
  },
  EnvoyRateLimitFails: {
    severity: "critical",
    summary: "Envoys get no answer to rate limits of {{ $labels.envoy_cluster_name }}",
    means:
      "The filter's calls fail or come too late. Requests pass, or are refused where the policy " +
      "says deniesWithoutAnswer.",
    look: "HeadgateAbsent, HeadgateDecisionsSlow; the cluster `headgate` in Envoy's /clusters.",
    act: "Bring Headgate nearer, or give it CPU; `rateLimitTimeout` is how long Envoys wait.",
  },
  EnvoyAdmissionFails: {
    severity: "critical",
    summary: "Requests pass Envoys without being admitted",
    means: "ext_proc streams fail or answers come too late, so that requests go on unasked.",
    look: "HeadgateAbsent, HeadgateStreamsFault; the cluster `headgate` in Envoy's /clusters.",
    act: "Mend the way to Headgate. While it is gone, local rate limits and breakers still hold.",
  },
  EnvoyCriticalOverflow: {
    severity: "critical",
    summary: "Envoys refuse critical requests to {{ $labels.envoy_cluster_name }}",
    means: "The breaker at priority HIGH is open: even critical requests are too many.",
    look: "The service's dashboard: shares at HIGH, in work; hosts that are ejected.",
    act: "Give the service room; is too much of its traffic critical?",
  },
  EnvoyHostsEjected: {
    severity: "warning",
    summary: "Hosts of {{ $labels.envoy_cluster_name }} are left out because they fail",
    means: "Outlier detection has ejected hosts for ten minutes; the others carry their load.",
    look: "Envoy's /clusters names them; their log.",
    act: "Replace the hosts that fail.",
  },
  EnvoyNoHealthyHosts: {
    severity: "critical",
    summary: "An Envoy has no healthy host for {{ $labels.envoy_cluster_name }}",
    means: "Its requests are answered with 503.",
    look: "Envoy's /clusters; the service's endpoints.",
    act: "Bring the service back, or mend its address.",
  },
  EnvoyOverloaded: {
    severity: "critical",
    summary: "{{ $labels.instance }} is out of memory and refuses requests",
    means: "Its overload manager has stopped accepting requests.",
    look: "The panel of pressure; memory of the process; large or many open requests.",
    act: "Give it memory (`overload.maxHeap`) or more Envoys beside it.",
  },
} as const satisfies Record<string, AlertWords>;

/** The name of an alert. */
export type AlertName = keyof typeof alertWords;
