import type { OptionValues } from "../options/options.js";

/** Access to sources of signals, in addition to the policy. */
export interface SignalChoice {
  /** The Prometheus of this process. */
  readonly prometheus?: PrometheusChoice;
  /** A directory of bearer tokens, each in a file named after its host. */
  readonly tokensPath?: string;
}

/** A Prometheus and its credentials. */
interface PrometheusChoice {
  /** Without user and password. */
  readonly url: string;
  /** Value of the header `authorization`. A secret. */
  readonly authorization?: string;
}

/** Reads the settings of signal sources. */
export function chooseSignals(
  values: Pick<OptionValues, "prometheusUrl" | "signalTokens">,
  problems: string[],
): SignalChoice {
  const { prometheusUrl, signalTokens: tokensPath } = values;
  const tokens = tokensPath === undefined ? {} : { tokensPath };
  if (prometheusUrl === undefined) return tokens;
  const url = URL.canParse(prometheusUrl) ? new URL(prometheusUrl) : undefined;
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === undefined || !isWeb || url.search !== "" || url.hash !== "") {
    const expected = "a URL of http or https, such as http://prometheus:9090, without a query";
    problems.push(`HEADGATE_PROMETHEUS_URL must be ${expected}`);
    return tokens;
  }
  return { ...tokens, prometheus: withoutLogin(url) };
}

function withoutLogin(url: URL): PrometheusChoice {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  if (url.username === "" && url.password === "") return { url: bare.href };
  const login = `${decodePercent(url.username)}:${decodePercent(url.password)}`;
  return { url: bare.href, authorization: `Basic ${Buffer.from(login).toString("base64")}` };
}

/** Decodes percent escapes. A literal `%` is left as it is. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
