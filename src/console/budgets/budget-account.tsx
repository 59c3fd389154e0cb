import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import {
  formatAmount,
  formatEstimate,
  parseAmount,
  unitText,
} from "../../core/budgets/amount-text.js";
import type { Budget, BudgetAccount, TopUp } from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  accountOfRoute,
  formatAccount,
  formatExhausted,
  judgeAccount,
  usedParts,
} from "../data/budgets.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatPercent, formatTime, millisOf } from "../data/format.js";
import { formatRoute } from "../data/route.js";
import { showText } from "../data/shown-text.js";
import { readSpan } from "../data/span.js";
import { ActionDialog, type PlannedChange } from "../parts/action-dialog.jsx";
import { DataTable, type TableColumn, textColumn } from "../parts/data-table.jsx";
import { Badge, Meter, PolledAnswer, Tile } from "../parts/status.jsx";
import { TitledPanel } from "../parts/titled-panel.jsx";
import { api } from "../state/api.js";
import { nowMs, randomWords } from "../state/browser.js";
import { route } from "../state/location.js";
import { usePoll } from "../state/poll.js";
import { mayChange } from "../state/session.js";

/** One account of a budget: what it has spent and may spend, and what operators do about it. */
export function BudgetAccountPage() {
  const account = accountOfRoute(route.value.path);
  const polled = usePoll((signal) => api.budgets.getBudgetAccount({ account }, { signal }), {
    everyMs: 2_000,
    about: JSON.stringify(account),
  });
  return (
    <>
      <p class="crumbs">
        <a href="#/budgets">Budgets</a> /{" "}
        <a href={formatRoute(["budget", account.budget])}>{showText(account.budget)}</a>
      </p>
      <PolledAnswer polled={polled.value}>
        {({ budget, account: known, topUps }) =>
          budget === undefined || known === undefined ? undefined : (
            <Account budget={budget} account={known} topUps={topUps} />
          )
        }
      </PolledAnswer>
    </>
  );
}

interface AccountProps {
  readonly budget: Budget;
  readonly account: BudgetAccount;
}

function Account({
  budget,
  account,
  topUps,
}: AccountProps & { readonly topUps: readonly TopUp[] }) {
  const { tone, word } = judgeAccount(account, budget);
  const used = usedParts(account);
  const removed = useSignal<TopUp | undefined>(undefined);
  const isOperator = mayChange(budget.domain === "" ? undefined : budget.domain);
  return (
    <>
      <div class="view-head">
        <h1>
          {account.account?.values.length === 0
            ? showText(budget.name)
            : formatAccount(account.account)}{" "}
          <Badge tone={tone}>{word}</Badge>
        </h1>
        {isOperator ? <AccountActions budget={budget} account={account} /> : undefined}
      </div>
      <Meter ratio={used.spent} more={used.reserved} tone={tone} />
      <AccountTiles budget={budget} account={account} />
      <TitledPanel title="Top-ups">
        <DataTable
          label="Top-ups"
          name="t."
          columns={topUpColumns(
            budget,
            isOperator ? (topUp) => (removed.value = topUp) : undefined,
          )}
          rows={topUps}
          rowId={({ id }) => id}
          isPlain={true}
          empty="No operator has added to this account."
        />
      </TitledPanel>
      {removed.value === undefined ? undefined : (
        <RemoveTopUp
          budget={budget}
          topUp={removed.value}
          onClose={() => {
            removed.value = undefined;
          }}
        />
      )}
    </>
  );
}

function AccountTiles({ budget, account }: AccountProps) {
  const { spent, reserved, capacity, toppedUp, spentBefore, lost, projected } = account;
  const used = usedParts(account);
  const amount = (value: bigint) => formatAmount(value, budget);
  const exhausted = formatExhausted(account);
  return (
    <div class="tiles">
      <Tile
        label="Spent"
        value={amount(spent)}
        detail={`${formatPercent(used.spent)} of the capacity`}
      />
      <Tile label="Reserved" value={amount(reserved)} detail="by calls in flight" />
      <Tile
        label="Capacity"
        value={amount(capacity)}
        detail={toppedUp === 0n ? "as the policy says" : `${amount(toppedUp)} of it topped up`}
      />
      {projected === undefined ? undefined : (
        <Tile
          label="Projected"
          value={formatEstimate(projected, budget)}
          detail={
            exhausted === ""
              ? `by ${formatTime(millisOf(budget.windowEnd))}, at the rate so far`
              : `exhausted on ${exhausted}`
          }
          tone={projected > capacity ? "notice" : "good"}
        />
      )}
      {projected === undefined ? undefined : (
        <Tile label="Window before" value={amount(spentBefore)} detail="spent in all" />
      )}
      <Tile label="Lost" value={amount(lost)} detail="estimates of calls whose replica died" />
    </div>
  );
}

function topUpColumns(
  budget: Budget,
  remove: ((topUp: TopUp) => void) | undefined,
): readonly TableColumn<TopUp>[] {
  return [
    textColumn("Top-up", ({ id }) => showText(id)),
    textColumn("Amount", ({ amount }) => formatAmount(amount, budget)),
    textColumn("Until", ({ expiresAt }) => formatTime(millisOf(expiresAt))),
    textColumn("For", ({ account }) => formatAccount(account), { isWideOnly: true }),
    textColumn("By", ({ author }) => showText(author), { isWideOnly: true }),
    textColumn("Reason", ({ reason }) => showText(reason), { isWideOnly: true }),
    ...(remove === undefined
      ? []
      : [
          textColumn<TopUp>("Actions", () => "", {
            render: (topUp) => (
              <button type="button" onClick={() => remove(topUp)}>
                Remove …
              </button>
            ),
          }),
        ]),
  ];
}

function AccountActions(props: AccountProps) {
  const open = useSignal<"topUp" | "refund" | undefined>(undefined);
  const onClose = (): void => {
    open.value = undefined;
  };
  return (
    <div class="tools">
      <button type="button" onClick={() => (open.value = "topUp")}>
        Top up …
      </button>
      <button type="button" onClick={() => (open.value = "refund")}>
        Refund …
      </button>
      {open.value === "topUp" ? <TopUpAction {...props} onClose={onClose} /> : undefined}
      {open.value === "refund" ? <RefundAction {...props} onClose={onClose} /> : undefined}
    </div>
  );
}

interface ActionProps extends AccountProps {
  readonly onClose: () => void;
}

/** Named once for a dialog: what it sends again after a lost answer is made once. */
function useChangeId(prefix: string): string {
  const words = randomWords(4).map((word) => (word >>> 0).toString(16));
  return useSignal(`${prefix}-${words.join("")}`).value;
}

function TopUpAction({ budget, account, onClose }: ActionProps) {
  const text = useSignal("");
  const until = useSignal("");
  const id = useChangeId("t");
  const amount = readAmount(text.value, budget);
  const spanMs = readSpan(until.value);
  const isForWindow = until.value.trim() === "";
  const isReady = amount !== undefined && (isForWindow || spanMs !== undefined);
  const changes: readonly PlannedChange[] = [
    {
      what: "Capacity",
      before: formatAmount(account.capacity, budget),
      after: formatAmount(account.capacity + (amount ?? 0n), budget),
    },
    { what: "Ends", before: "-", after: isForWindow ? "with the window" : `in ${until.value}` },
  ];
  return (
    <AccountAction
      budget={budget}
      account={account}
      verb="Top up"
      words={["top-up", text.value, isForWindow ? [] : ["--for", until.value.trim()]]}
      changes={isReady ? changes : undefined}
      run={async (reason) => {
        const { topUp } = await api.budgets.topUpBudget({
          ...selectorOf(account),
          amount: amount ?? 0n,
          reason,
          id,
          ...(spanMs === undefined ? {} : { expiresAt: timestampFromMs(nowMs() + spanMs) }),
        });
        const until = formatTime(millisOf(topUp?.expiresAt));
        return `Added until ${until}, on all replicas within a second.`;
      }}
      onClose={onClose}
    >
      <div class="fields">
        <AmountField budget={budget} text={text.value} onText={(value) => (text.value = value)} />
        <label class="field">
          <span>For (empty: until the window ends)</span>
          <input
            placeholder="3d"
            value={until.value}
            onInput={({ currentTarget }) => (until.value = currentTarget.value)}
          />
        </label>
      </div>
    </AccountAction>
  );
}

function RefundAction({ budget, account, onClose }: ActionProps) {
  const text = useSignal("");
  const id = useChangeId("r");
  const amount = readAmount(text.value, budget);
  const { spent } = account;
  const after = amount === undefined ? spent : spent > amount ? spent - amount : 0n;
  return (
    <AccountAction
      budget={budget}
      account={account}
      verb="Refund"
      words={["refund", text.value, []]}
      changes={
        amount === undefined
          ? undefined
          : [
              {
                what: "Spent",
                before: formatAmount(spent, budget),
                after: formatAmount(after, budget),
              },
            ]
      }
      run={async (reason) => {
        const { refunded } = await api.budgets.refundBudget({
          ...selectorOf(account),
          amount: amount ?? 0n,
          reason,
          id,
        });
        return `Gave back ${formatAmount(refunded, budget)}.`;
      }}
      onClose={onClose}
    >
      <AmountField budget={budget} text={text.value} onText={(value) => (text.value = value)} />
    </AccountAction>
  );
}

function AccountAction({
  budget: { name },
  account,
  verb,
  words: [command, amount, flags],
  changes,
  run,
  onClose,
  children,
}: ActionProps & {
  readonly verb: string;
  readonly words: readonly [command: string, amount: string, flags: readonly string[]];
  readonly changes: readonly PlannedChange[] | undefined;
  readonly run: (reason: string) => Promise<string>;
  readonly children: ComponentChildren;
}) {
  const values = account.account?.values ?? [];
  return (
    <ActionDialog
      title={`${verb} ${[name, ...values].map(showText).join(" ")}`}
      verb={verb}
      changes={changes}
      command={(reason) =>
        writeCommand([
          ...["headgate", "budgets", command, name, ...values],
          ...["--amount", amount === "" ? "..." : amount, ...flags],
          ...reasonFlags(reason),
        ])
      }
      run={run}
      onClose={onClose}
    >
      {children}
    </ActionDialog>
  );
}

function AmountField({
  budget,
  text,
  onText,
}: {
  readonly budget: Budget;
  readonly text: string;
  readonly onText: (text: string) => void;
}) {
  return (
    <label class="field">
      <span>Amount, in {unitText(budget)}</span>
      <input
        inputMode="decimal"
        autocomplete="off"
        value={text}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    </label>
  );
}

function RemoveTopUp({
  budget,
  topUp: { id, amount },
  onClose,
}: {
  readonly budget: Budget;
  readonly topUp: TopUp;
  readonly onClose: () => void;
}) {
  const { name } = budget;
  const words = ["headgate", "budgets", "delete-top-up", name, id];
  return (
    <ActionDialog
      title={`Remove a top-up of ${showText(name)}`}
      verb="Remove"
      isDangerous={true}
      changes={[{ what: showText(id), before: formatAmount(amount, budget), after: "nothing" }]}
      command={(reason) => writeCommand([...words, ...reasonFlags(reason)])}
      run={async (reason) => {
        await api.budgets.deleteTopUp({ budget: name, id, reason });
        return "Removed, on all replicas within a second.";
      }}
      onClose={onClose}
    />
  );
}

function selectorOf({ account }: BudgetAccount) {
  return account === undefined ? {} : { account };
}

/** Above 0; Headgate says what is too large. */
function readAmount(text: string, budget: Budget): bigint | undefined {
  const amount = parseAmount(text, budget);
  return amount === 0n ? undefined : amount;
}
