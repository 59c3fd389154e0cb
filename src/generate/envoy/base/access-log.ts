import { noted, type Tree } from "../../base/document.js";
import { extension } from "./values.js";

/**
 * The access log of a listener, a JSON object a line on standard output, by the names that
 * `headgate replay` reads, and with what refused a request: the rule of a rate limit, the rule or
 * the cause of admission, and Envoy's own word. Headers of callers are not in it: what limits go by
 * may be a credential.
 *
 * Source: envoy.extensions.access_loggers.stream.v3.StdoutAccessLog; Envoy, "Access logging".
 */
export function accessLog(): readonly Tree[] {
  const format = {
    start_time: "%START_TIME%",
    method: "%REQ(:METHOD)%",
    path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
    authority: "%REQ(:AUTHORITY)%",
    protocol: "%PROTOCOL%",
    response_code: "%RESPONSE_CODE%",
    response_flags: "%RESPONSE_FLAGS%",
    response_code_details: "%RESPONSE_CODE_DETAILS%",
    rate_limit_rule: "%DYNAMIC_METADATA(envoy.filters.http.ratelimit:rule)%",
    admission_rule: "%DYNAMIC_METADATA(headgate:rule)%",
    admission_cause: "%DYNAMIC_METADATA(headgate:cause)%",
    duration: "%DURATION%",
    bytes_received: "%BYTES_RECEIVED%",
    bytes_sent: "%BYTES_SENT%",
    upstream_cluster: "%UPSTREAM_CLUSTER%",
    upstream_host: "%UPSTREAM_HOST%",
    downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%",
    x_forwarded_for: "%REQ(X-FORWARDED-FOR)%",
    x_request_id: "%REQ(X-REQUEST-ID)%",
  };
  const stdout = extension(
    "envoy.access_loggers.stdout",
    "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
    { log_format: { json_format: format } },
  );
  return [noted("`headgate replay` reads it, and it names what refused a request.", stdout)];
}
