import type {
  AdmissionDecider,
  AdmissionGrant,
  AdmissionTicket,
} from "../../src/decide/admission/admission-call.js";
import { ExchangeCounts } from "../../src/decide/admission/exchange-counts.js";
import { createExternalProcessorService } from "../../src/rpc/ext-proc/ext-proc.js";
import { ExtProcCodec } from "../../src/rpc/ext-proc/ext-proc-codec.js";
import { listenNatively } from "./native-listener.js";

/**
 * The service itself on our own transport, in front of an admission that looks at what a real one
 * looks at and lets everybody in.
 */
const nothingToSay: AdmissionGrant = {
  priority: "normal",
  setHeaders: [],
  removeHeaders: [],
  metadata: undefined,
  responseHeaders: undefined,
  isFollowed: true,
};

const ticket: AdmissionTicket = {
  responded() {},
  end() {},
};

const openDoor: AdmissionDecider = {
  requestHeaderNames: new Set([":authority", ":path", ":method", "x-account", "grpc-timeout"]),
  responseHeaderNames: new Set([":status", "grpc-status", "endpoint-load-metrics"]),
  attributeNames: new Set(["xds.cluster_name"]),
  metadataPaths: new Map(),
  readsBody: () => false,
  readBody: () => ({ model: "" }),
  begin: () => ({ kind: "admitted", terms: nothingToSay, ticket }),
};

listenNatively([
  createExternalProcessorService({
    admission: openDoor,
    codec: new ExtProcCodec(openDoor),
    counts: new ExchangeCounts(),
  }),
]);
