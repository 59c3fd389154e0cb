import {
  listenerOptionRows,
  type OptionSupport,
  serviceOptionRows,
} from "../../../src/generate/envoy/base/option-support.js";
import { tcpOptionRows } from "../../../src/generate/envoy/base/tcp-option-support.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
A version is the first in which the option is known to work. If a target does not support an option,
it is an error (HG359) on a service or TCP listener, and for TLS and HTTP/3 of the listener. The
rest of \`proxies.listener\` is then left to the target. Generated Envoys write the JSON access log
that \`headgate replay\` reads. Envoy Gateway writes its own JSON format, and in Istio your
Telemetry objects define what is logged, because the listeners also serve other requests.`;

/** Whose words say it, and since when; or why nothing does. */
function supportCell(support: OptionSupport): string {
  if ("why" in support) return `no: ${support.why}`;
  return support.since === undefined ? support.by : `${support.by}, 1.${support.since}`;
}

/** What each target of `headgate generate` says an option with. */
export function targetsPage(): ReferencePage {
  const listener = Object.entries(listenerOptionRows).map(
    ([name, row]) => [`proxies.listener.${name}`, row] as const,
  );
  const tcp = Object.entries(tcpOptionRows).map(
    ([name, row]) => [`proxies.tcpListeners.${name}`, row] as const,
  );
  const rows = [...Object.entries(serviceOptionRows), ...listener, ...tcp];
  return {
    path: "targets.md",
    title: "Options by target",
    purpose:
      "This page shows how Envoy, Istio and Envoy Gateway support each option of the policy.",
    body: paragraphs(
      intro,
      table(
        ["option", "Envoy", "Istio", "Envoy Gateway"],
        rows.map(([name, { envoy, istio, gateway }]) => [
          code(name),
          envoy,
          supportCell(istio),
          supportCell(gateway),
        ]),
      ),
    ),
  };
}
