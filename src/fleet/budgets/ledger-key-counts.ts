import type {
  SharedKey,
  SharedKeyAnswer,
  SharedKeyCounts,
} from "../../core/admission/shared-key-counts.js";
import type { ReservedEntry } from "../../core/budgets/account.js";
import { accountKey } from "../../core/budgets/account-key.js";
import type { BudgetLedger } from "../../core/budgets/budget-ledger.js";

/** Counts calls in flight by key in the budget ledger, with one account for each key. */
export class LedgerKeyCounts implements SharedKeyCounts {
  readonly #ledger: Pick<BudgetLedger, "reserve" | "settle">;
  readonly #digest: (text: string) => string;

  /** @param digest hexadecimal and collision-resistant; see `accountKey` */
  constructor(ledger: Pick<BudgetLedger, "reserve" | "settle">, digest: (text: string) => string) {
    this.#ledger = ledger;
    this.#digest = digest;
  }

  take(
    { service, key, max, isEnforced }: SharedKey,
    deadlineMs: number,
    answered: (answer: SharedKeyAnswer) => void,
  ): void {
    const entry: ReservedEntry = {
      account: accountKey(inFlightBudgetName(service), [key], this.#digest),
      law: { kind: "inFlight" },
      capacity: max,
      estimate: 1,
      isEnforced,
      whenLost: "release",
      onStoreFailure: "local",
    };
    this.#ledger.reserve([entry], deadlineMs, ({ id, result }) => {
      const isOver = result.entries[0]?.isOver === true;
      const giveBack = id && (() => this.#ledger.settle({ id, costs: [0] }));
      answered({ isOver, giveBack });
    });
  }
}

/** Returns the budget name of the accounts of a service's calls in flight. */
function inFlightBudgetName(service: string): string {
  return `inFlight:${service}`;
}
