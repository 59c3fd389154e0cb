import { createReflectionServices } from "../../rpc/grpc/reflection.js";
import { toCallFailure } from "../../rpc/grpc/status.js";
import { GrpcJsTransport, type GrpcJsTransportParts } from "../../rpc/grpc-js/grpc-js-transport.js";
import { LaneTransport } from "../../wire/grpc/lane-transport.js";
import type { Transport } from "../../wire/grpc/transport.js";
import type { LaneCounts } from "../metrics/lane-metrics.js";
import type { OptionValues } from "../options/options.js";

/** The options that this is about. */
export type TransportValues = Pick<
  OptionValues,
  | "transport"
  | "reflection"
  | "requestBytesMax"
  | "grpcConnectionAgeMsMax"
  | "grpcConnectionAgeGraceMs"
>;

/** What is served, by whatever transport. */
export type ServedParts = Omit<
  GrpcJsTransportParts,
  "connectionAgeMsMax" | "connectionAgeGraceMs" | "receivedBytesMax"
> & {
  /** Told how connections and streams of the lane end. */
  readonly laneCounts: LaneCounts;
};

/** The transport that the options name. */
export function createTransport(
  values: TransportValues,
  { laneCounts, ...served }: ServedParts,
): Transport {
  const { grpcConnectionAgeMsMax, grpcConnectionAgeGraceMs } = values;
  const { services } = served;
  const parts = {
    ...served,
    services: values.reflection ? [...services, ...createReflectionServices(services)] : services,
    receivedBytesMax: values.requestBytesMax,
    connectionAgeMsMax: grpcConnectionAgeMsMax,
    connectionAgeGraceMs: grpcConnectionAgeGraceMs,
  };
  if (values.transport === "lane") {
    // Answers of one turn leave together: what is due runs after all that this turn has begun.
    const scheduleFlush = (run: () => void): void => process.nextTick(run);
    return new LaneTransport({
      ...parts,
      toFailure: toCallFailure,
      scheduleFlush,
      onConnectionEnd: (end) => laneCounts.countEnd(end),
      onStreamError: (code) => laneCounts.countReset(code),
    });
  }
  return new GrpcJsTransport(parts);
}
