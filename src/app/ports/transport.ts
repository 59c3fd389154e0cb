import { createReflectionServices } from "../../rpc/grpc/reflection.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import { LaneTransport, type LaneTransportParts } from "../../wire/grpc/lane-transport.js";
import type { LaneCounts } from "../metrics/lane-metrics.js";
import type { OptionValues } from "../options/options.js";

/** The options that this is about. */
export type TransportValues = Pick<
  OptionValues,
  "reflection" | "requestBytesMax" | "grpcConnectionAgeMsMax" | "grpcConnectionAgeGraceMs"
>;

/** What is served. */
export type ServedParts = Pick<
  LaneTransportParts,
  "services" | "clock" | "random" | "onBug" | "isLate" | "onDropped"
> & {
  /** Told how connections and streams end. */
  readonly laneCounts: LaneCounts;
};

/** The transport of the gRPC port. */
export function createTransport(
  values: TransportValues,
  { laneCounts, services, ...served }: ServedParts,
): LaneTransport {
  return new LaneTransport({
    ...served,
    services: values.reflection ? [...services, ...createReflectionServices(services)] : services,
    receivedBytesMax: values.requestBytesMax,
    connectionAgeMsMax: values.grpcConnectionAgeMsMax,
    connectionAgeGraceMs: values.grpcConnectionAgeGraceMs,
    toFailure: toCallFailure,
    // Answers of one turn leave together: what is due runs after all that this turn has begun.
    scheduleFlush: (run) => process.nextTick(run),
    onConnectionEnd: (end) => laneCounts.countEnd(end),
    onStreamError: (code) => laneCounts.countReset(code),
  });
}
