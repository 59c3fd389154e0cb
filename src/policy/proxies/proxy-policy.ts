import type {
  AdaptiveConcurrencyPolicy,
  AdmissionControlPolicy,
  ClientTls,
} from "../upstream/upstream-policy.js";

/** What holds for every proxy of the fleet: `proxies` of a policy. Plain data. */
export interface ProxyPolicy {
  /**
   * Proxies that share a fleet's limit while nobody drives them: `auto` breakers are their part of
   * it, rounded up. Default 1.
   */
  readonly expectedCount: number;
  readonly headgate: HeadgatePlace;
  readonly listener: ListenerPolicy;
  readonly gateway: GatewayPolicy;
  /** The overload manager; undefined: none is written. */
  readonly overload: OverloadPolicy | undefined;
  /** What services have that ask for it and say nothing else; undefined: none have it. */
  readonly adaptiveConcurrency: AdaptiveConcurrencyPolicy | undefined;
  /** As above. */
  readonly admissionControl: AdmissionControlPolicy | undefined;
  /** Where the runbook is, without a fragment; `*` is an alert's name; undefined: beside them. */
  readonly runbookUrl: string | undefined;
  /** Where Envoys of ours find the files of secrets. Undefined: `/etc/envoy/secrets`. */
  readonly secretsFolder: string | undefined;
}

/** Where proxies find Headgate. */
export interface HeadgatePlace {
  /** Default `headgate.headgate.svc.cluster.local`. */
  readonly address: string;
  /** Default 8081. */
  readonly port: number;
  /** Default 18000. */
  readonly controlPort: number;
  /** Undefined: plaintext. */
  readonly tls: ClientTls | undefined;
  /** How long a request waits for a rate limit's answer. Default 20, Envoy's own. */
  readonly rateLimitTimeoutMs: number;
  /** Whether no answer means refused. Default false: it passes. */
  readonly deniesWithoutAnswer: boolean;
}

/** The listener of generated proxies. */
export interface ListenerPolicy {
  /** Where callers are listened for, as an IP address. Default 0.0.0.0. */
  readonly address: string;
  /** Default 10000. */
  readonly port: number;
  /** The egress listener of a sidecar. Default 10001. */
  readonly outboundPort: number;
  /** Default 9901; on loopback only. */
  readonly adminPort: number;
  /** Where Prometheus finds the metrics of a whole proxy. Default 9902. */
  readonly statisticsPort: number;
  /** Open connections of one listener. Default 10,000. */
  readonly connectionsMax: number;
  /** Streams of one HTTP/2 connection. Default 100. */
  readonly concurrentStreamsMax: number;
  /** Proxies of ours before this one, whose x-forwarded-for is believed. Default 0. */
  readonly trustedHops: number;
  /** Headers of a request in KiB; undefined: Envoy's 60. */
  readonly requestHeadersKibMax: number | undefined;
  /** Headers of a request; undefined: Envoy's 100. */
  readonly headersCountMax: number | undefined;
  /** A caller's connection, which is drained then; undefined: no bound. */
  readonly maxConnectionMs: number | undefined;
  /**
   * What an edge proxy does with %2F and %5C in paths; undefined: "unescapeAndRedirect" in proxies
   * of ours, and what a mesh or gateway does by itself in theirs.
   */
  readonly escapedSlashes: EscapedSlashesAction | undefined;
  /** Of what callers reach; undefined: plaintext. The egress listener is on loopback, without. */
  readonly tls: ListenerTls | undefined;
  /** HTTP/3 beside TCP at an edge proxy, which needs `tls`; undefined: none. */
  readonly http3: Http3Policy | undefined;
}

/** HTTP/3, by QUIC on the listener's port. */
export interface Http3Policy {
  /** The port that callers are told, where others reach them; undefined: the listener's own. */
  readonly advertisedPort: number | undefined;
}

/** Where the certificate of a listener comes from, and what vouches for callers' certificates. */
export type CertificateSource =
  /** Files as the proxy sees them, read as it starts. */
  | {
      readonly kind: "files";
      readonly certFile: string;
      readonly keyFile: string;
      /** Undefined: callers need no certificate. */
      readonly clientCaFile: string | undefined;
    }
  /** A secret by its name, which a proxy follows as it changes. */
  | {
      readonly kind: "secret";
      readonly secret: string;
      /** Whether callers have to show a certificate that the secret's authorities vouch for. */
      readonly isMutual: boolean;
    };

/** Source: envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext. */
export type ListenerTls = CertificateSource & {
  /** Names of which a caller's certificate has one: hosts, addresses or URIs. Empty: any. */
  readonly subjectAltNames: readonly string[];
  /** Default "TLSv1_2". */
  readonly versionMin: "TLSv1_2" | "TLSv1_3";
};

/** Source: HttpConnectionManager, `path_with_escaped_slashes_action`. */
export type EscapedSlashesAction =
  | "keepUnchanged"
  | "rejectRequest"
  | "unescapeAndRedirect"
  | "unescapeAndForward";

/** The gateway whose proxies `generate gateway` and `generate istio` patch. */
export interface GatewayPolicy {
  /** Undefined: it is called as the policy. */
  readonly name: string | undefined;
  /** Undefined: that of the generated objects. */
  readonly namespace: string | undefined;
  /** Labels of the pods of Istio's gateway; undefined: `istio: ingressgateway`. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** Its listeners for HTTP and HTTPS, in their order. Undefined: one, `http` on port 80. */
  readonly listeners: readonly GatewayListener[] | undefined;
}

/** A listener of a Gateway. Source: Gateway API, Listener. */
export interface GatewayListener {
  readonly name: string;
  readonly port: number;
  /** Such as `*.example.com`. Undefined: all hosts. */
  readonly hostname: string | undefined;
  /** Needed where HTTP/3 is spoken: each HTTPS listener has one of its own. */
  readonly protocol?: "HTTP" | "HTTPS" | undefined;
}

/** Envoy's overload manager. Source: envoy.config.overload.v3.OverloadManager. */
export interface OverloadPolicy {
  /** Default 250. */
  readonly refreshMs: number;
  /** Undefined: the heap is not watched. */
  readonly heap: HeapOverload | undefined;
  /** CPU in use; undefined: not watched. */
  readonly cpu: CpuOverload | undefined;
  /** Memory of the proxy's control group; undefined: not watched. */
  readonly cgroupMemory: CgroupOverload | undefined;
  /** Downstream connections of the process; undefined: no bound. */
  readonly connectionsMax: number | undefined;
}

/** Ratios of the heap's largest size. */
export interface HeapOverload {
  readonly bytesMax: number;
  /** From where memory is given back. Default 0.85. */
  readonly shrinkAtRatio: number;
  /** From where requests are refused one by one. Default 0.90. */
  readonly shedFromRatio: number;
  /** From where none are taken. Default 0.95. */
  readonly stopAcceptingAtRatio: number;
}

/** Ratios of the CPUs that the process may use. */
export interface CpuOverload {
  /** Default "container". */
  readonly of: "host" | "container";
  /** From where new requests are refused one by one. Default 0.85. */
  readonly shedFromRatio: number;
  /** From where all are. Default 0.98. */
  readonly shedAllAtRatio: number;
}

/** Ratios of the control group's memory. */
export interface CgroupOverload {
  /** Undefined: the limit of the group itself. */
  readonly bytesMax: number | undefined;
  /** Default 0.95. */
  readonly stopAcceptingAtRatio: number;
}
