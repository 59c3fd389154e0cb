import type { AlertWords } from "./alert.js";

/** Alerts of budgets, with their sections of the runbook. */
export const budgetAlertWords = {
  HeadgateBudgetNearEnd: {
    severity: "warning",
    summary: "An account of the budget {{ $labels.budget }} is above warnAt",
    means:
      "Calls in flight included, an account has used more of its capacity than the policy's " +
      "warnAt. Its calls still pass.",
    look: "`headgate budgets show` with `--by used`: which account is it, and is that expected?",
    act:
      "Tell the owner of the account. If the spending is wanted, `headgate budgets top-up` adds " +
      "to it for a time; otherwise find the caller in the usage by account and model.",
  },
  HeadgateBudgetExhausted: {
    severity: "critical",
    summary: "The budget {{ $labels.budget }} refuses calls",
    means: "An account has no room left, and its calls are refused until its window ends.",
    look:
      "`headgate budgets show` with `--by used`: is one account exhausted, or are many? How much " +
      "of it is only reserved by calls in flight?",
    act:
      "Top the account up, or refund calls that failed at the provider. If much is reserved and " +
      "little is spent, estimates are too high: lower `estimate.quantile`, or let callers " +
      "declare their maximum.",
  },
  HeadgateBudgetWillExceed: {
    severity: "warning",
    summary: "At its rate, the budget {{ $labels.budget }} does not last for its window",
    means: "What was spent lately is, over a whole window, more than the budget's amount.",
    look:
      "`headgate budgets show`: `projected`, and the day on which it is exhausted. Which model " +
      "grew, by `headgate budgets usage`?",
    act:
      "Decide now what happens then: a larger amount, a fallback to a cheaper model, or a " +
      "refusal. A top-up bridges until the window ends.",
  },
  HeadgateSettlementsDropped: {
    severity: "critical",
    summary: "{{ $labels.job }} does not charge calls that have ended",
    means:
      "Too many ended calls waited for the store, or it has no room for another account. The " +
      "oldest were dropped: budgets have more left than is true.",
    look:
      "headgate_store_circuit_open; headgate_budget_queued_settlements. `headgate budgets`: does " +
      "a budget have close to 100,000 accounts?",
    act:
      "Bring the store back. If a budget has too many accounts, take the part of `per` away that " +
      "callers can choose freely. The provider's invoice says what is missing.",
  },
  HeadgateSettlementsLate: {
    severity: "info",
    summary: "Calls of the budget {{ $labels.budget }} are charged after their lease",
    means:
      "A replica was cut off from the store for longer than its lease. Its reservations were " +
      "released meanwhile, and the true costs are charged now.",
    look: "Restarts and pauses of replicas; HeadgateStoreAway; the latency of the store.",
    act: "Nothing is lost. If it goes on, fix what stops the replica or its store.",
  },
  HeadgateReservationsLost: {
    severity: "warning",
    summary: "{{ $labels.job }} releases reservations of replicas that are gone",
    means:
      "A replica ended without settling its calls in flight. They are released or charged as " +
      "`whenLost` says.",
    look: "Which replica ended, and how: killed, out of memory, or longer to stop than it had?",
    act:
      "Give replicas time to stop. Where calls that nobody settles must not be free, set " +
      "`whenLost: charge`.",
  },
  HeadgateUsageUnknown: {
    severity: "warning",
    summary: "The usage of calls to {{ $labels.service }} is estimated",
    means:
      "For more than a fifth of the calls, no response told what was used, so budgets are " +
      "charged by the size of the response or by an estimate.",
    look:
      "The log line usageUnrecognised says why: another form, a compressed response. Does the " +
      "provider report usage of streams only on request (`stream_options`)?",
    act:
      "Set `usage.from` to what the service answers, remove accept-encoding from requests, or " +
      "let callers ask for usage.",
  },
  HeadgateBudgetStoreAway: {
    severity: "critical",
    summary: "The budget {{ $labels.budget }} is decided without the store",
    means: "onStoreFailure of the budget decides: calls pass, are refused, or count by replica.",
    look: "HeadgateStoreAway; the latency of the store; whether it is out of memory.",
    act: "Bring the store back. What calls cost meanwhile is charged then.",
  },
} as const satisfies Record<string, AlertWords>;
