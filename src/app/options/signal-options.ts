import { optionalTextOption, secretOption } from "./option.js";

/** Where readings for the concurrency law `signal` are asked for, beside what a policy says. */
export const signalOptionRows = {
  prometheusUrl: secretOption({
    env: "HEADGATE_PROMETHEUS_URL",
    valueName: "URL",
    docs:
      "The URL of Prometheus for a policy whose `prometheus` names no `server`, " +
      "such as `http://prometheus:9090`. It may contain a user and a password.",
  }),
  signalTokens: optionalTextOption({
    env: "HEADGATE_SIGNAL_TOKENS",
    valueName: "DIRECTORY",
    docs:
      "A directory of bearer tokens for signal sources. The file with a host's " +
      "name contains the token for it, which is sent over https or to " +
      "HEADGATE_PROMETHEUS_URL. Headgate reads it for each poll.",
  }),
} as const;
