import {
  listenerOptionRows,
  type OptionSupport,
  serviceOptionRows,
} from "../../../src/generate/envoy/base/option-support.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
A version is the first that surely has the option. What a target cannot say is an error (HG359)
where a service says it, or TLS or HTTP/3 of the listener; the rest of \`proxies.listener\` is
left to the target there. The JSON access log that \`headgate replay\` reads is written by
generated Envoys: Envoy Gateway writes JSON of its own, and in Istio a Telemetry object of yours
says what is logged, for listeners that serve others' requests as well.`;

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
  const rows = [...Object.entries(serviceOptionRows), ...listener];
  return {
    path: "targets.md",
    title: "Options by target",
    purpose: "Look up what Envoy, Istio and Envoy Gateway make of an option of the policy.",
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
