import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { FleetHistory } from "../data/history.js";
import { api } from "./api.js";
import { nowMs } from "./browser.js";
import { type Polled, usePoll } from "./poll.js";

/** The past as it is known, and how many replicas did not tell theirs. */
export interface KnownHistory {
  readonly history: FleetHistory;
  readonly silentReplicas: number;
}

/** What is asked for beside the fleet's own numbers. */
export interface HistoryQuestion {
  readonly service?: string;
  readonly room?: string;
  readonly rules?: readonly { readonly domain: string; readonly label: string }[];
  readonly everyMs?: number;
  readonly isOn?: boolean;
}

/** Steps of rules are of ten seconds, and told once they are over. */
const ruleLagMs = 12_000;

/** Keeps the last 15 minutes up to date: the first answer has all, the others what is new. */
export function useHistory({
  service = "",
  room = "",
  rules = [],
  everyMs = 1_000,
  isOn = true,
}: HistoryQuestion): ReadonlySignal<Polled<KnownHistory>> {
  const about = JSON.stringify([service, room, rules]);
  const known = useRef({ about, history: new FleetHistory() });
  if (known.current.about !== about) known.current = { about, history: new FleetHistory() };
  const { history } = known.current;
  return usePoll(
    async (signal) => {
      const { end } = history;
      // Half a second later than the step: its own end lies within it.
      const sinceMs = (end ?? 0) * 1_000 + 499 - (rules.length > 0 ? ruleLagMs : 0);
      const since = end === undefined ? {} : { since: timestampFromMs(sinceMs) };
      const wanted = rules.map(({ domain, label }) => ({ domain, label }));
      const question = { ...since, service, room, rules: wanted };
      const answer = await api.fleet.getHistory(question, { signal });
      history.add(answer, nowMs());
      return { history, silentReplicas: answer.silentReplicas };
    },
    { everyMs, about, isOn },
  );
}
