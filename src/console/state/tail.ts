import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { DecisionSample } from "../../gen/headgate/admin/v1/admin_pb.js";
import { api, errorText } from "./api.js";
import { pause, untilVisible } from "./browser.js";
import { untilSignedIn } from "./poll.js";

/** Filter for decisions. */
export interface TailQuestion {
  readonly domain: string;
  readonly ruleLabel: string;
  readonly deniedOnly: boolean;
  readonly having: readonly DescriptorEntry[];
  readonly sampleRatio: number;
}

/** Decisions as they arrived, newest first, each with its own number. */
export interface Tail {
  readonly decisions: readonly { readonly id: number; readonly sample: DecisionSample }[];
  /** Left out since the start, because they arrived too fast. */
  readonly dropped: number;
  readonly isOpen: boolean;
  readonly error: string | undefined;
}

const kept = 500;
const nothing: Tail = { decisions: [], dropped: 0, isOpen: false, error: undefined };

/** Follows decisions while the page is visible. Opens the stream again after an error. */
export function useTail(filter: TailQuestion): Signal<Tail> {
  const tail = useSignal<Tail>(nothing);
  const about = JSON.stringify(filter);
  useEffect(() => {
    const end = new AbortController();
    tail.value = nothing;
    void follow(filter, tail, end.signal);
    return () => end.abort();
  }, [about]);
  return tail;
}

async function follow(
  filter: TailQuestion,
  tail: Signal<Tail>,
  signal: AbortSignal,
): Promise<void> {
  let count = 1;
  while (!signal.aborted) {
    await untilVisible(signal);
    await untilSignedIn(signal);
    if (signal.aborted) return;
    try {
      const having = filter.having.map(({ key, value }) => ({ key, value }));
      const stream = api.limits.tailDecisions({ ...filter, having, perSecondMax: 50 }, { signal });
      for await (const { decisions, droppedCount } of stream) {
        const { decisions: before, dropped } = tail.peek();
        const added = decisions.map((sample, i) => ({ id: count + i, sample })).reverse();
        count += decisions.length;
        tail.value = {
          decisions: [...added, ...before].slice(0, kept),
          dropped: dropped + Number(droppedCount),
          isOpen: true,
          error: undefined,
        };
        if (document.hidden) break;
      }
    } catch (error) {
      if (signal.aborted) return;
      tail.value = { ...tail.peek(), isOpen: false, error: errorText(error) };
    }
    await pause(1_000, signal);
  }
}
