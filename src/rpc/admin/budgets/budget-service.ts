import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { amountMax } from "../../../core/budgets/account.js";
import type { TopUp } from "../../../core/budgets/top-up.js";
import { globMatches, parseGlob } from "../../../core/collections/glob.js";
import {
  AccountOrder,
  type BudgetSchema,
  type BudgetService,
} from "../../../gen/headgate/admin/v1/admin_pb.js";
import type { BudgetPolicy } from "../../../policy/budgets/budget-policy.js";
import type { AccountView, BudgetAdministration } from "../budget-parts.js";
import { demandPart } from "../call.js";
import { policyOf } from "../key-methods.js";
import { wideOf } from "../messages.js";
import { badToken, cursorToken, pageRule, pageToken, readCursor, readPageToken } from "../pages.js";
import { keyNameBounds, RequestReader } from "../request-reader.js";
import { type RankedPlace, rankAccounts } from "./account-ranking.js";
import { BudgetSums, usedRatioOf } from "./account-sums.js";
import { encodeAccount, encodeBudget, encodeSums, encodeTopUp } from "./budget-messages.js";
import {
  type BudgetServiceParts,
  budgetAudit,
  demandAccount,
  demandBudget,
  demandPartCount,
  neededName,
  readId,
  readSelector,
  readValues,
  reasonRule,
  visibleBudgets,
} from "./budget-requests.js";
import { topUpMethods } from "./top-up-methods.js";
import { usageMethod } from "./usage-method.js";

/** Creates BudgetService. Values of accounts are callers' data, so none is in an error. */
export function budgetService(parts: BudgetServiceParts): ServiceImpl<typeof BudgetService> {
  return {
    ...listMethods(parts),
    ...accountMethod(parts),
    ...topUpMethods(parts),
    ...usageMethod(parts),
    refundBudget: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const selector = readSelector(request.account, reader);
      const amount = reader.whole("amount", request.amount, { min: 1, max: amountMax });
      const reason = reader.text("reason", request.reason, reasonRule);
      const id = readId(request.id, reader, { ...parts, prefix: "r" });
      reader.end();
      const budget = demandBudget(parts, selector.budget, { context, role: "operator" });
      const { values } = demandAccount(budget, selector);
      // First, so that nothing is ever refunded without a trace.
      const after = { id, values: [...values], amount };
      await parts.records.note(
        budgetAudit(parts, {
          action: "RefundBudget",
          budget,
          reason,
          context,
          before: undefined,
          after,
        }),
      );
      const refunded = await budgets.refund(budget, { values, id, amount });
      const account = await budgets.account(budget, values);
      return {
        refunded: wideOf(refunded),
        account: encodeAccount(account, { parts, budgets, budget }),
      };
    },
  };
}

function listMethods(
  parts: BudgetServiceParts,
): Pick<ServiceImpl<typeof BudgetService>, "listBudgets" | "listBudgetAccounts"> {
  const sums = new BudgetSums();
  return {
    listBudgets: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const name = reader.text("budget", request.budget, keyNameBounds);
      reader.end();
      const { version } = policyOf(parts);
      const nowMs = Math.floor(parts.clock.epochUs() / 1_000);
      const shown =
        name === "" ? visibleBudgets(parts, context) : [demandBudget(parts, name, { context })];
      const messages: MessageInitShape<typeof BudgetSchema>[] = [];
      for (const budget of shown) {
        if (request.withoutSums) messages.push(encodeBudget(parts, budget));
        else {
          const read = await sums.of(budgets, budget, { nowMs, version });
          messages.push(encodeBudget(parts, budget, encodeSums(read.sums, read.readMs)));
        }
      }
      return { budgets: messages, policyVersion: version };
    },
    listBudgetAccounts: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const name = reader.text("budget", request.budget, neededName);
      const countMax = reader.count("page_size", request.pageSize, pageRule);
      if (AccountOrder[request.order] === undefined) reader.report("order", "unknown order");
      const { usedRatioMin } = request;
      if (!(usedRatioMin >= 0)) reader.report("used_ratio_min", "must be at least 0");
      const patterns = readValues("values", request.values, reader);
      reader.end();
      const budget = demandBudget(parts, name, { context });
      if (patterns.length > 0) demandPartCount(budget, patterns);
      const globs = patterns.map(parseGlob);
      const isWanted = (account: AccountView): boolean =>
        usedRatioOf(account) >= usedRatioMin &&
        globs.every((glob, i) => globMatches(glob, account.values[i] ?? ""));
      const wanted = { budget, isWanted, token: request.pageToken };
      const page =
        request.order === AccountOrder.NONE
          ? await unsortedPage(budgets, wanted)
          : await sortedPage(parts, budgets, { ...wanted, order: request.order, countMax });
      return {
        accounts: page.accounts.map((one) => encodeAccount(one, { parts, budgets, budget })),
        nextPageToken: page.next,
        budget: encodeBudget(parts, budget),
      };
    },
  };
}

function accountMethod(
  parts: BudgetServiceParts,
): Pick<ServiceImpl<typeof BudgetService>, "getBudgetAccount"> {
  return {
    getBudgetAccount: async (request, context) => {
      const budgets = demandPart(parts.budgets);
      const reader = new RequestReader();
      const selector = readSelector(request.account, reader);
      reader.end();
      const budget = demandBudget(parts, selector.budget, { context });
      const { values } = demandAccount(budget, selector);
      const account = await budgets.account(budget, values);
      const topUps = [...budgets.topUps()].filter(({ topUp }) => concerns(topUp, budget, values));
      return {
        budget: encodeBudget(parts, budget),
        account: encodeAccount(account, { parts, budgets, budget }),
        topUps: topUps.slice(0, pageRule.max).map(encodeTopUp),
      };
    },
  };
}

/** Whether a top-up applies to an account. */
function concerns(topUp: TopUp, { name }: BudgetPolicy, values: readonly string[]): boolean {
  return topUp.budget === name && topUp.values.every((one, i) => one === "*" || one === values[i]);
}

interface WantedPage {
  readonly budget: BudgetPolicy;
  readonly isWanted: (account: AccountView) => boolean;
  readonly token: string;
}

interface AccountPage {
  readonly accounts: readonly AccountView[];
  /** A page token. */
  readonly next: string;
}

/** Returns a page as the store divides them. Its cursors may be any text. */
async function unsortedPage(
  budgets: BudgetAdministration,
  { budget, isWanted, token }: WantedPage,
): Promise<AccountPage> {
  const page = await budgets.accounts(budget, readCursor(token).cursor);
  return { accounts: page.rows.filter(isWanted), next: cursorToken("", page.cursor) };
}

async function sortedPage(
  { digest }: Pick<BudgetServiceParts, "digest">,
  budgets: BudgetAdministration,
  wanted: WantedPage & { readonly order: AccountOrder; readonly countMax: number },
): Promise<AccountPage> {
  const { budget, isWanted, token, order, countMax } = wanted;
  const { accounts, next } = await rankAccounts(budgets, budget, {
    measureOf:
      order === AccountOrder.USED_RATIO
        ? (account) => Math.min(Math.floor(usedRatioOf(account) * ratioScale), amountMax)
        : ({ spent }) => spent,
    digestOf: ({ values }) => digest(JSON.stringify(values)).slice(0, 32),
    isWanted,
    after: readPlace(readPageToken(token)),
    countMax,
  });
  return {
    accounts,
    next: next === undefined ? "" : pageToken(`${next.measure}.${next.digest}`),
  };
}

/** Ratios are compared as whole numbers of billionths. */
const ratioScale = 1_000_000_000;

function readPlace(place: string | undefined): RankedPlace | undefined {
  if (place === undefined) return undefined;
  const [, measure, digest] = /^(\d{1,16})\.([0-9a-f]{32})$/.exec(place) ?? [];
  if (measure === undefined || digest === undefined) throw badToken();
  return { measure: Number(measure), digest };
}
