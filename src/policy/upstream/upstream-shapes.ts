import { plainShape as shape } from "../text/shapes.js";

/** `upstream.tls` of a service. */
export const upstreamTlsShape = shape("tls of an upstream", [
  "caFile",
  "certFile",
  "keyFile",
  "secret",
  "mutual",
  "serverName",
  "subjectAltNames",
]);
