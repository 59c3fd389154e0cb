import type { GeneratedCase } from "./generated.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import type { Stage } from "./stage.js";
import type { Translation } from "./translated.js";
import { limitConfigs, podSettings } from "./translated-limits.js";
import { XdsServer } from "./xds-server.js";

/**
 * The Headgate in the place of Envoy Gateway's rate-limit service, with the settings and limits of
 * a case; undefined where it has none.
 */
export async function startLimiter(
  stage: Stage,
  given: GeneratedCase,
  of: Translation,
): Promise<HostedHeadgate | undefined> {
  const configs = limitConfigs(given, of);
  if (configs.length === 0) return undefined;
  const plane = await XdsServer.start(stage);
  await plane.hold("1", configs);
  const env = {
    ...podSettings(given),
    // There is one here.
    HEADGATE_REPLICAS: "1",
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: plane.address,
    CONFIG_GRPC_XDS_NODE_ID: "envoy-ratelimit",
  };
  return HostedHeadgate.start(stage, { env });
}
