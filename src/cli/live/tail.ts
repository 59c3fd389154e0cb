import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import {
  type DecisionSample,
  DecisionSampleSchema,
  type TailDecisionsResponse,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import {
  type AdminCommandParts,
  addFleetViewFlags,
  type FleetViewFlags,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { readCount, readPart } from "../input/number-flags.js";
import type { CommandContext } from "../terminal/context.js";
import type { Drawing } from "../terminal/drawing.js";
import { entriesHelp, parseEntries } from "../terminal/key-selector.js";
import { clockText, countText, entriesText, replicaText, safeText } from "../terminal/quantity.js";
import { truncateText } from "../terminal/text-width.js";
import { followerOf, followRefusals, refusalLooks } from "./service-refusals.js";

interface TailFlags extends FleetViewFlags {
  readonly denied?: true;
  readonly rule?: string;
  readonly having?: string;
  readonly sample: string;
  readonly perSecond: string;
  readonly lines?: string;
}

/** Maximum number of decisions per second. */
const perSecondMax = 1_000;

/** Maximum number of decisions after which the command can be set to end. */
const tailLinesMax = 1_000_000_000;

/** Adds `headgate tail`: decisions as they are made. */
export function addTail(program: Command, context: CommandContext): void {
  const command = program
    .command("tail")
    .description("follow decisions as they happen")
    .argument("[DOMAIN]", "only decisions of this domain")
    .option("--denied", "only denied requests")
    .option("--rule <LABEL>", "only the rule with this label")
    .option("--having <ENTRIES>", "only descriptors with these entries, such as plan=free")
    .option("--sample <PART>", "sample this ratio of decisions, above 0 to 1", "1")
    .option("--per-second <COUNT>", `show at most this many a second, up to ${perSecondMax}`, "50")
    .option("-n, --lines <COUNT>", "exit after this many decisions");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate tail
  headgate tail shop --denied
  headgate tail shop --having plan=free --rule plan.user -n 20
  headgate tail -o json | jq -r 'select(.isDenied) | .ruleLabel'`,
    notes: `
It follows all replicas until Ctrl-C. Decisions beyond the rate are skipped and
counted on standard error. JSON has one decision a line, YAML one a document.
In text, and without a domain, rule or entries, it also shows each second what
admission and circuit breakers refuse, as sums.
${entriesHelp}`,
  }).action((domain: string | undefined, flags: TailFlags) =>
    runAdmin(command, context, (call) => tail(domain ?? "", flags, call)),
  );
}

async function tail(domain: string, flags: TailFlags, call: AdminCommandParts): Promise<void> {
  const { client, context } = call;
  const request = {
    domain,
    ruleLabel: flags.rule ?? "",
    deniedOnly: flags.denied === true,
    having: flags.having === undefined ? [] : [...parseEntries(flags.having)],
    sampleRatio: readPart("--sample", flags.sample),
    perSecondMax: readCount("--per-second", flags.perSecond, perSecondMax),
    thisReplica: flags.thisReplica === true,
  };
  const most =
    flags.lines === undefined
      ? Number.POSITIVE_INFINITY
      : readCount("--lines", flags.lines, tailLinesMax);
  const ending = new AbortController();
  const stop = context.terminal.onEnd(() => ending.abort());
  const isOfAll = request.domain + request.ruleLabel === "" && request.having.length === 0;
  const stopRefusals =
    isOfAll && call.printer.format === "table"
      ? followRefusals(refusalLooks(call, request), followerOf(call))
      : () => {};
  try {
    // The stream lasts until the user ends it.
    const options = { signal: ending.signal, timeoutMs: 0 };
    const shown = new ShownDecisions(call, most);
    for await (const message of client.limits.tailDecisions(request, options)) {
      if (shown.take(message) === "enough") break;
    }
  } catch (thrown) {
    const isOurEnd = ending.signal.aborted && thrown instanceof ConnectError;
    if (!isOurEnd || thrown.code !== Code.Canceled) throw thrown;
  } finally {
    stop();
    stopRefusals();
    ending.abort();
  }
}

/** Prints received decisions. */
class ShownDecisions {
  readonly #call: AdminCommandParts;
  #left: number;
  #isOpen = false;

  constructor(call: AdminCommandParts, most: number) {
    this.#call = call;
    this.#left = most;
  }

  take({ decisions, droppedCount }: TailDecisionsResponse): "more" | "enough" {
    const { context, printer, client } = this.#call;
    if (!this.#isOpen && context.terminal.isScreen) {
      context.output.err(`Following decisions at ${safeText(client.url)}; Ctrl-C stops.`);
    }
    this.#isOpen = true;
    for (const decision of decisions) {
      printer.printNext(DecisionSampleSchema, decision, drawDecision);
      this.#left -= 1;
      if (this.#left <= 0) return "enough";
    }
    if (droppedCount > 0n) {
      context.output.err(`… ${countText(droppedCount)} skipped because of the rate`);
    }
    return "more";
  }
}

/** Draws one decision in one line. */
function drawDecision(decision: DecisionSample, { style, columnsMax }: Drawing): readonly string[] {
  const { time, isDenied, domain, ruleLabel, entries, hits, remainingHits, decidedBy } = decision;
  const replica = replicaText(decision.replica);
  const verdict = isDenied ? "denied " : "allowed";
  const notes = [
    hits === 1n ? "" : `${countText(hits)} hits`,
    ruleLabel === "" || isDenied ? "" : `${countText(remainingHits)} left`,
    decidedBy === "store" || decidedBy === "" ? "" : `by ${safeText(decidedBy)}`,
  ].filter((note) => note !== "");
  const rule = ruleLabel === "" ? "no rule" : safeText(ruleLabel);
  const words =
    `${safeText(domain)}/${rule}  ${entriesText(entries)}` +
    (notes.length === 0 ? "" : `  (${notes.join(", ")})`);
  const head = `${clockText(time)}  ${replica}  `;
  const rest = truncateText(words, columnsMax - head.length - verdict.length - 2);
  return [`${style.dim(head)}${isDenied ? style.bad(verdict) : style.good(verdict)}  ${rest}`];
}
