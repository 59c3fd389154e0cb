import { WireType } from "@bufbuild/protobuf/wire";
import {
  FieldReader,
  fieldTag,
  LastPart,
  leanPartsMax,
  TooManyFieldsError,
} from "../codec/field-reader.js";
import { readDurationMs } from "../codec/well-known-reader.js";
import type { ClusterLoad } from "./cluster-signals.js";
import { type NodeIdentity, readNodeIdentity } from "./node-identity.js";

/** The relevant parts of a load report. */
export interface LoadMessage {
  /** Envoy states it in every report. */
  readonly node: NodeIdentity | undefined;
  readonly loads: readonly ClusterLoad[];
}

const { Varint, LengthDelimited } = WireType;

/** Source: envoy.service.load_stats.v3.LoadStatsRequest. */
const reportTags = { node: fieldTag(1, LengthDelimited), stats: fieldTag(2, LengthDelimited) };

/** Source: envoy.config.endpoint.v3.ClusterStats. */
const statsTags = {
  name: fieldTag(1, LengthDelimited),
  locality: fieldTag(2, LengthDelimited),
  dropped: fieldTag(3, Varint),
  interval: fieldTag(4, LengthDelimited),
} as const;

/** Source: envoy.config.endpoint.v3.UpstreamLocalityStats. */
const localityTags = {
  succeeded: fieldTag(2, Varint),
  inProgress: fieldTag(3, Varint),
  failed: fieldTag(4, Varint),
} as const;

/** Maximum fields of a report. A cluster has 14 and 8 for each locality: 2,000 have 28,000. */
const loadFieldsMax = 32_768;

/**
 * Reads a load report by hand. The node in it has 500 extensions and 61 KB, and the general decoder
 * would create a message for each extension, each second.
 *
 * @throws Error for bytes that are not such a message
 */
export function decodeLoads(bytes: Uint8Array): LoadMessage {
  const reader = new FieldReader(bytes, loadFieldsMax);
  const loadsMax = leanPartsMax(bytes.length);
  const loads: ClusterLoad[] = [];
  let node: NodeIdentity | undefined;
  while (reader.next()) {
    if (reader.tag === reportTags.stats) {
      if (loads.length >= loadsMax) throw new TooManyFieldsError();
      loads.push(readLoad(reader));
    } else if (reader.tag === reportTags.node && node === undefined)
      node = readNodeIdentity(reader);
    else reader.skip();
  }
  return { node, loads };
}

/** The sums over a cluster's localities. */
type Totals = { -readonly [Name in "inFlight" | "successCount" | "errorCount"]: number };

function readLoad(reader: FieldReader): ClusterLoad {
  const cluster = new LastPart();
  let dropCount = 0;
  let coveredMs = 0;
  const totals: Totals = { inFlight: 0, successCount: 0, errorCount: 0 };
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === statsTags.name) cluster.pass(reader);
    else if (reader.tag === statsTags.locality) addLocality(reader, totals);
    else if (reader.tag === statsTags.dropped) dropCount = reader.whole();
    else if (reader.tag === statsTags.interval) coveredMs = Math.max(0, readDurationMs(reader));
    else reader.skip();
  }
  reader.leave(outerEnd);
  const { inFlight, successCount, errorCount } = totals;
  // Spelled out: a spread takes five times as long, and a message has thousands of these.
  const name = cluster.text(reader);
  return { cluster: name, inFlight, successCount, errorCount, dropCount, coveredMs };
}

function addLocality(reader: FieldReader, to: Totals): void {
  const outerEnd = reader.enter();
  while (reader.next()) {
    if (reader.tag === localityTags.succeeded) to.successCount += reader.whole();
    else if (reader.tag === localityTags.inProgress) to.inFlight += reader.whole();
    else if (reader.tag === localityTags.failed) to.errorCount += reader.whole();
    else reader.skip();
  }
  reader.leave(outerEnd);
}
