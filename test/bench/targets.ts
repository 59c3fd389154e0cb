import { limitRows, type RedisScriptRow } from "./redis-script.js";
import type { GatewayRow, Row, ServerRows } from "./row.js";
import { rowNames } from "./server-rows.js";

/** What two rows of one run are to each other, and what they should be. */
export interface Comparison {
  readonly what: string;
  /** For example "at most 1/12". */
  readonly target: string;
  /** In the same terms, of this run: "1/29.4". */
  readonly measured: string;
}

/**
 * What more limits of one request cost Redis, next to one limit, as far as the rows were measured.
 */
export function compareLimits(rows: readonly RedisScriptRow[]): readonly Comparison[] {
  const measure = (row: RedisScriptRow, one: RedisScriptRow): string =>
    (row.redisCpuUsPerDecision / one.redisCpuUsPerDecision).toFixed(2);
  const { one, two, four } = limitRows;
  return [
    pair(rows, [two, one], { what: `${two}: of one's Redis CPU`, target: "at most 1.4", measure }),
    pair(rows, [four, one], { what: `${four}: of one's Redis CPU`, target: "at most 2", measure }),
  ].flat();
}

/** Everything that is compared. */
export interface ComparedRows {
  readonly servers: ServerRows;
  readonly gateways: readonly GatewayRow[];
}

/**
 * The native transport next to @grpc/grpc-js, in the terms of its targets, as far as the rows were
 * measured. It says how it is and fails nothing: what else the machine does moves a row by a third.
 */
export function compare({ servers, gateways }: ComparedRows): readonly Comparison[] {
  const { calls, exchanges, steady } = servers;
  const cpuPart = (row: Row, floor: Row): string =>
    `1/${(floor.cpuUsPerCall / row.cpuUsPerCall).toFixed(1)}`;
  const p99Part = (row: Row, floor: Row): string => (row.p99Ms / floor.p99Ms).toFixed(2);
  const ratePart = (row: GatewayRow, other: GatewayRow): string =>
    (row.requestsPerSecond / other.requestsPerSecond).toFixed(2);
  const { floor, steadyFloor } = rowNames;
  const ofFloor = "of an empty @grpc/grpc-js call's CPU";
  const ofP99 = "of the empty @grpc/grpc-js server's p99 at half its most";
  return [
    pair(calls, [rowNames.emptyNative, floor], {
      what: `empty unary call, native: ${ofFloor}`,
      target: "at most 1/12",
      measure: cpuPart,
    }),
    pair(calls, [rowNames.memoryNative, floor], {
      what: `decision, memory, 20,000 keys, native: ${ofFloor}`,
      target: "at most 1/6",
      measure: cpuPart,
    }),
    pair(calls, [rowNames.redisNative, floor], {
      what: `decision, Redis, 20,000 keys, native: ${ofFloor}`,
      target: "at most 1/5",
      measure: cpuPart,
    }),
    pair(exchanges, [rowNames.exchangeNative, rowNames.exchangeFloor], {
      what: "exchange of headers, native: of @grpc/grpc-js's CPU",
      target: "at most 1/5",
      measure: cpuPart,
    }),
    ...[
      rowNames.steadyEmptyNative,
      rowNames.steadyMemoryNative,
      rowNames.steadyRedisNative,
    ].flatMap((name) =>
      pair(steady?.rows ?? [], [name, steadyFloor], {
        what: `${name}: ${ofP99}`,
        target: "below 1",
        measure: p99Part,
      }),
    ),
    pair(gateways, [rowNames.gatewayNative, rowNames.gatewayFloor], {
      what: "through Envoy, native: of the empty @grpc/grpc-js server's requests a second",
      target: "at least 1.8",
      measure: ratePart,
    }),
    pair(gateways, [rowNames.filterNative, rowNames.filterFloor], {
      what: "the same, HTTP/2 and no upstream",
      target: "at least 1.8",
      measure: ratePart,
    }),
  ].flat();
}

interface Pairing<R> {
  readonly what: string;
  readonly target: string;
  readonly measure: (row: R, other: R) => string;
}

/** One comparison, or none where a row is missing. */
function pair<R extends { readonly name: string }>(
  rows: readonly R[],
  [name, otherName]: readonly [name: string, otherName: string],
  { what, target, measure }: Pairing<R>,
): readonly Comparison[] {
  const row = rows.find((candidate) => candidate.name === name);
  const other = rows.find((candidate) => candidate.name === otherName);
  if (row === undefined || other === undefined) return [];
  return [{ what, target, measured: measure(row, other) }];
}
