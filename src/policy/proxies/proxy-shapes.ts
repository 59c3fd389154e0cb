import { plainShape as shape } from "../text/shapes.js";

/** `proxies` of a policy. */
export const proxiesShape = shape("proxies", [
  "expected",
  "headgate",
  "listener",
  "gateway",
  "overload",
  "adaptiveConcurrency",
  "admissionControl",
  "runbookUrl",
  "secretsFolder",
]);

/** `proxies.headgate`. */
export const headgatePlaceShape = shape("headgate", [
  "address",
  "port",
  "controlPort",
  "tls",
  "rateLimitTimeout",
  "failureModeDeny",
]);

/** `proxies.headgate.tls`. */
export const clientTlsShape = shape("tls", ["caFile", "certFile", "keyFile", "serverName"]);

/** `proxies.listener`. */
export const listenerShape = shape("a listener", [
  "address",
  "port",
  "outboundPort",
  "adminPort",
  "statisticsPort",
  "maxConnections",
  "maxConcurrentStreams",
  "trustedHops",
  "maxRequestHeadersKb",
  "maxHeadersCount",
  "maxConnectionDuration",
  "pathWithEscapedSlashesAction",
  "tls",
  "http3",
]);

/** `proxies.listener.http3`. */
export const http3Shape = shape("http3", ["advertisedPort"]);

/** `proxies.listener.tls`. */
export const listenerTlsShape = shape("tls of a listener", [
  "certFile",
  "keyFile",
  "clientCaFile",
  "secret",
  "mutual",
  "subjectAltNames",
  "minVersion",
]);

/** `proxies.gateway`. */
export const gatewayShape = shape("a gateway", ["name", "namespace", "labels", "listeners"]);

/** `proxies.gateway.listeners[]`. */
export const gatewayListenerShape = shape("a listener of a Gateway", [
  "name",
  "port",
  "hostname",
  "protocol",
]);

/** `proxies.overload`. */
export const overloadShape = shape("an overload", [
  "refreshInterval",
  "maxHeap",
  "shrinkHeapAt",
  "shedFrom",
  "stopAcceptingAt",
  "maxConnections",
  "cpu",
  "cgroupMemory",
]);

/** `proxies.overload.cpu`. */
export const cpuOverloadShape = shape("a cpu", ["of", "shedFrom", "shedAllAt"]);

/** `proxies.overload.cgroupMemory`. */
export const cgroupOverloadShape = shape("a cgroupMemory", ["max", "stopAcceptingAt"]);
