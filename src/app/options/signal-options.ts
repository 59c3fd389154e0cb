import { optionalTextOption, secretOption } from "./option.js";

/** Where readings for the concurrency law `signal` are asked for, beside what a policy says. */
export const signalOptionRows = {
  prometheusUrl: secretOption({
    env: "HEADGATE_PROMETHEUS_URL",
    valueName: "URL",
    docs:
      "The Prometheus that is asked where a policy's `prometheus` names no `server`, such as " +
      "`http://prometheus:9090`. It may hold a user and a password.",
  }),
  signalTokens: optionalTextOption({
    env: "HEADGATE_SIGNAL_TOKENS",
    valueName: "DIRECTORY",
    docs:
      "Bearer tokens of signals' sources: a file named as the host holds the token that is sent " +
      "to it, over https or as HEADGATE_PROMETHEUS_URL says. Read for each question.",
  }),
} as const;
