import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "../app/clock.js";
import type { AdminCall } from "./admin-command.js";
import { commandFailure } from "./admin-errors.js";
import type { Drawing } from "./print.js";
import { clockText, replicaText, safeText } from "./quantity.js";
import { cutText } from "./text-width.js";

/** What circuit breakers of Envoys refuse of one service, by the newest that was reported. */
export interface BreakerRefusals {
  readonly service: string;
  readonly perSecond: number;
  /** The replica that said so. */
  readonly replica: string;
}

/** Services that are told of; a fleet in which more are full has one trouble, not many. */
const toldServicesMax = 5;

/** How often a stream of decisions asks for them, in milliseconds: Envoys report as often. */
const everyMs = 1_000;

/**
 * The services whose requests breakers refuse now, most refused first. Envoys report sums and no
 * single requests, and every replica knows the sum of all Envoys.
 */
async function askBreakers(
  { client }: Pick<AdminCall, "client">,
  request: { readonly thisReplica: boolean },
): Promise<readonly BreakerRefusals[]> {
  const { services } = await client.fleet.listServices(request);
  const most = new Map<string, BreakerRefusals>();
  for (const { name: service, overflowPerSecond: perSecond, replica } of services) {
    if (perSecond > (most.get(service)?.perSecond ?? 0)) {
      most.set(service, { service, perSecond, replica });
    }
  }
  const sorted = [...most.values()].sort((a, b) => b.perSecond - a.perSecond);
  return sorted.slice(0, toldServicesMax);
}

/**
 * Rows below a table of keys; none where no breaker refuses anything. Where they cannot be asked
 * for, a row says so: the keys are worth a look without them.
 */
export async function breakerRows(
  call: AdminCall,
  request: { readonly thisReplica: boolean },
): Promise<readonly string[]> {
  const drawing = call.printer.drawing();
  try {
    return drawBreakers(await askBreakers(call, request), drawing);
  } catch (thrown) {
    const { message } = commandFailure(thrown, call.client);
    const words = `What circuit breakers refuse is not shown: ${message}`;
    return ["", drawing.style.dim(cutText(safeText(words), drawing.columnsMax))];
  }
}

function drawBreakers(
  refusals: readonly BreakerRefusals[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (refusals.length === 0) return [];
  return [
    "",
    cutText("Refused by circuit breakers, as Envoys report", columnsMax),
    ...refusals.map(({ service, perSecond }) => {
      const rate = rateOf(perSecond);
      return `  ${style.bad(rate)}  ${cutText(safeText(service), columnsMax - rate.length - 4)}`;
    }),
  ];
}

/**
 * Prints a line a service each second in which breakers refuse requests of it, until the answer is
 * called. Where they cannot be asked for it says so once, and asks no more.
 */
export function followBreakers(
  call: AdminCall,
  request: { readonly thisReplica: boolean },
): () => void {
  const { context, printer } = call;
  let isOver = false;
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    const refusals = await askBreakers(call, request);
    if (isOver) return;
    for (const one of refusals) context.output.out(drawBreakerLine(one, printer.drawing()));
    cancel = systemClock.schedule(everyMs, follow);
  };
  const follow = (): void => {
    look().catch((thrown: unknown) => {
      if (isOver) return;
      const { message } = commandFailure(thrown, call.client);
      context.output.err(`Note: what circuit breakers refuse is not shown: ${message}`);
    });
  };
  follow();
  return () => {
    isOver = true;
    cancel();
  };
}

/** A report, in one line like those of decisions. */
function drawBreakerLine(
  { service, perSecond, replica }: BreakerRefusals,
  { style, columnsMax }: Drawing,
): string {
  const time = timestampFromMs(Math.floor(systemClock.epochUs() / 1_000));
  const head = `${clockText(time)}  ${replicaText(replica)}  `;
  const words = `${safeText(service)}: ${rateOf(perSecond)} by circuit breakers, as Envoys report`;
  const rest = cutText(words, columnsMax - head.length - 9);
  return `${style.dim(head)}${style.bad("refused")}  ${rest}`;
}

function rateOf(perSecond: number): string {
  return `${perSecond.toFixed(1)}/s`;
}
