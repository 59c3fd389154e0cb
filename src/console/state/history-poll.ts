import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ReadonlySignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { FleetHistory } from "../data/history.js";
import { api } from "./api.js";
import { nowMs } from "./browser.js";
import { type Polled, usePoll } from "./poll.js";

/** Known history, and the number of replicas that did not report theirs. */
export interface KnownHistory {
  readonly history: FleetHistory;
  readonly silentReplicas: number;
}

/** Requested data in addition to the fleet's own. */
export interface HistoryQuestion {
  readonly service?: string;
  readonly room?: string;
  readonly rules?: readonly { readonly domain: string; readonly label: string }[];
  readonly everyMs?: number;
  readonly isOn?: boolean;
}

/** Steps of rules last ten seconds, and are reported after their end. */
const ruleLagMs = 12_000;

/** Keeps the last 15 minutes up to date: the first answer has all of it, later ones only news. */
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
      // Half a second after the step, so that the step's own end is not requested again.
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
