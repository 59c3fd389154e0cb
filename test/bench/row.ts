/** One measured row. Times are of one call as the client sees it; CPU is the server process's. */
export interface Row {
  readonly name: string;
  readonly callsPerSecond: number;
  readonly cpuUsPerCall: number;
  /** CPU of the Redis process; absent without one. */
  readonly redisCpuUsPerCall?: number;
  /** CPU of the process that makes the calls: above a core no load is kept up, whoever answers. */
  readonly loadCpuUsPerCall: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failedCount: number;
  readonly deniedCount: number;
}

/** Rows of servers under load. */
export interface ServerRows {
  /** As many unary calls as a server can take. */
  readonly calls: readonly Row[];
  /** As many exchanges of ext_proc. */
  readonly exchanges: readonly Row[];
  /** Unary calls at a rate that all of the servers can take. */
  readonly steady: SteadyRows | undefined;
}

/** Rows at one rate. */
export interface SteadyRows {
  readonly callsPerSecond: number;
  readonly rows: readonly Row[];
}

/** Requests through a real Envoy. Times are of a request as its client sees it. */
export interface GatewayRow {
  readonly name: string;
  readonly requestsPerSecond: number;
  /** CPU for one request, in microseconds: of Envoy, and of each process around it. */
  readonly envoyUs: number;
  readonly headgateUs: number;
  readonly upstreamUs: number;
  readonly loadUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failedCount: number;
  readonly deniedCount: number;
}
