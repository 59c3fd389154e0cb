import type { ErrorCode } from "../../src/core/base/errors.js";
import { type AnswerSource, type Ask, storeBudgetMs } from "./ask.js";

/** Times are rounded up to a grid of 2^-10 ms, at most twice on the way to an answer. */
const slackMs = 2 / 1_024;

/** The part of what a caller still waits that may be used up before it is answered. */
const callerBudgetRatio = 0.6;

/** An answer under the eyes of its caller. */
export interface SeenAnswer {
  readonly ask: Ask;
  readonly source: AnswerSource;
  /** Of a failed call; undefined when the failure was of no known kind. */
  readonly code: ErrorCode | undefined;
  readonly nowMs: number;
}

/** Everything that is wrong with one answer. */
export function checkAnswer(seen: SeenAnswer): readonly string[] {
  const { ask, source, code, nowMs } = seen;
  const found: string[] = [];
  const leftMs = Math.max(0, ask.deadlineMs - ask.startMs);
  const budgetMs = Math.min(storeBudgetMs, leftMs * callerBudgetRatio);
  if (nowMs > ask.startMs + budgetMs + slackMs) {
    found.push(`answered after ${nowMs - ask.startMs} ms of ${budgetMs}`);
  }
  if (source === "memory" && ask.outcome !== "denied") {
    found.push(`let in from memory what it refused`);
  }
  if (source === "store" && ask.outcome === "failed") found.push(`failed although it was decided`);
  if (source === "nobody" && leftMs === 0 && code !== "DEADLINE_PASSED") {
    found.push("answered a caller who had gone");
  }
  if (source === "fallback") found.push(...checkFallback(seen));
  return found;
}

/** Whether the failure modes of the limits that were asked allow the answer. */
function checkFallback({ ask, code }: SeenAnswer): readonly string[] {
  const limits = ask.prepared.asks.map((one) => one.limit);
  const isFailing = limits.some(({ onStoreFailure }) => onStoreFailure === "error");
  if (isFailing !== (ask.outcome === "failed")) {
    return [`was ${ask.outcome} without a store where a limit says error: ${isFailing}`];
  }
  if (isFailing) {
    return code?.startsWith("STORE_") === true ? [] : [`failed with ${code ?? "an unknown error"}`];
  }
  const binding = ask.prepared.asks.filter(
    ({ limit, charge }) => limit.role === "enforce" && !charge.isRefund,
  );
  const isShut = binding.some(({ limit }) => limit.onStoreFailure === "deny");
  if (isShut && ask.outcome === "ok") return ["let in what is denied without a store"];
  const isOpen = limits.every(({ onStoreFailure }) => onStoreFailure === "allow");
  if (isOpen && ask.outcome !== "ok") return ["denied what is allowed without a store"];
  return [];
}
