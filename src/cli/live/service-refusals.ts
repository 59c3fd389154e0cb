import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "../../core/base/clock.js";
import type { Service } from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import { adminCallFailure } from "../admin/admin-call-failure.js";
import type { AdminCommandParts } from "../admin/admin-command.js";
import type { Drawing } from "../terminal/drawing.js";
import { clockText, countText, replicaText, safeText } from "../terminal/quantity.js";
import { truncateText } from "../terminal/text-width.js";

/** Refused requests of one service, before or instead of its rate limits. */
interface ServiceRefusals {
  readonly service: string;
  /** By circuit breakers of Envoys, from the latest report, or by admission of replicas. */
  readonly by: "breakers" | "admission";
  /** Undefined at the first look at admission, which only has counts. */
  readonly perSecond: number | undefined;
  /** Refused by admission since its replicas started. */
  readonly totalCount: number;
  /** One of the reporting replicas. */
  readonly replica: string;
}

/** Maximum number of reported services. If more are full, the fleet has one common problem. */
const reportedServicesMax = 5;

/** Polling interval while following decisions, in milliseconds: that of Envoys' reports. */
const everyMs = 1_000;

type Refusing = Pick<Service, "name" | "replica" | "refused" | "overflowPerSecond">;

/**
 * Computes the refusals of services between two looks, most first. Envoys report sums of their
 * breakers, which every replica knows. Each replica counts what its own admission refuses.
 */
export class RefusalLooks {
  /** By replica and service, from the previous look. */
  #counted: ReadonlyMap<string, CountedRefusals> = new Map();

  /** Returns the refusals of this look, compared with the previous one. */
  take(services: readonly Refusing[], atMs: number): readonly ServiceRefusals[] {
    const found = new Map<string, ServiceRefusals>();
    const counted = new Map<string, CountedRefusals>();
    for (const { name: service, replica, refused, overflowPerSecond } of services) {
      const full = found.get(`breakers ${service}`)?.perSecond ?? 0;
      if (overflowPerSecond > full) {
        const perSecond = overflowPerSecond;
        const one = { service, by: "breakers", perSecond, totalCount: 0, replica } as const;
        found.set(`breakers ${service}`, one);
      }
      const key = JSON.stringify([replica, service]);
      const before = this.#counted.get(key);
      counted.set(key, { refused, atMs });
      if (refused === 0n) continue;
      const perSecond = before && growthPerSecond(before, { refused, atMs });
      const sum = found.get(`admission ${service}`);
      found.set(`admission ${service}`, {
        service,
        by: "admission",
        perSecond: sum?.perSecond === undefined ? perSecond : sum.perSecond + (perSecond ?? 0),
        totalCount: Number(refused) + (sum?.totalCount ?? 0),
        replica: (perSecond ?? 0) > (sum?.perSecond ?? 0) ? replica : (sum?.replica ?? replica),
      });
    }
    this.#counted = counted;
    const most = (one: ServiceRefusals): number => one.perSecond ?? one.totalCount;
    return [...found.values()]
      .filter(({ perSecond }) => perSecond !== 0)
      .sort((a, b) => {
        return most(b) - most(a);
      });
  }
}

interface CountedRefusals {
  readonly refused: bigint;
  readonly atMs: number;
}

/** A restarted replica counts from 0 again. */
function growthPerSecond(before: CountedRefusals, { refused, atMs }: CountedRefusals): number {
  const grown = refused >= before.refused ? refused - before.refused : refused;
  return (Number(grown) * 1_000) / Math.max(1, atMs - before.atMs);
}

/** Takes a look at refusals on each call. */
type LookAtRefusals = () => Promise<readonly ServiceRefusals[]>;

/** Creates looks at the services of the fleet, or of one replica. */
export function refusalLooks(
  { client }: Pick<AdminCommandParts, "client">,
  request: { readonly thisReplica: boolean },
): LookAtRefusals {
  const looks = new RefusalLooks();
  return async () => {
    const { services } = await client.fleet.listServices(request);
    return looks.take(services, systemClock.monotonicMs());
  };
}

/**
 * Returns rows below a table of keys; none if nothing is refused. If the refusals cannot be read, a
 * row says so, since the keys are useful without them.
 */
export async function keyRefusalRows(
  call: AdminCommandParts,
  look: LookAtRefusals,
): Promise<readonly string[]> {
  const drawing = call.printer.drawing();
  try {
    return drawRefusals(await look(), drawing);
  } catch (thrown) {
    const { message } = adminCallFailure(thrown, call.client);
    const words = `Refusals of services are not shown: ${message}`;
    return ["", drawing.style.dim(truncateText(safeText(words), drawing.columnsMax))];
  }
}

const titles = {
  breakers: "Refused by circuit breakers, as Envoys report",
  admission: "Refused by admission",
} as const;

/** Draws the rows for both kinds, each with a title, most refused first. */
export function drawRefusals(
  refusals: readonly ServiceRefusals[],
  { style, columnsMax }: Drawing,
): readonly string[] {
  return (["breakers", "admission"] as const).flatMap((by) => {
    const own = refusals.filter((one) => one.by === by).slice(0, reportedServicesMax);
    if (own.length === 0) return [];
    const rows = own.map((one) => {
      const rate = rateOf(one);
      const name = truncateText(safeText(one.service), columnsMax - rate.length - 4);
      return `  ${style.bad(rate)}  ${name}`;
    });
    return ["", truncateText(titles[by], columnsMax), ...rows];
  });
}

/** Receives refusals and failures. */
interface RefusalFollower {
  readonly clock: Pick<Clock, "schedule">;
  readonly onRefusal: (one: ServiceRefusals) => void;
  /** Called once for each period in which the refusals cannot be read. */
  readonly onFailure: (thrown: unknown) => void;
}

/**
 * Reports each service once a second while requests of it are refused, until the returned function
 * is called. If the refusals cannot be read, it tries again in the next second.
 */
export function followRefusals(
  lookAt: LookAtRefusals,
  { clock, onRefusal, onFailure }: RefusalFollower,
): () => void {
  let isOver = false;
  let isAway = false;
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    try {
      const refusals = await lookAt();
      isAway = false;
      const going = refusals.filter(({ perSecond }) => perSecond !== undefined && !isOver);
      for (const one of going.slice(0, reportedServicesMax)) onRefusal(one);
    } catch (thrown) {
      if (!isAway && !isOver) onFailure(thrown);
      isAway = true;
    }
    if (!isOver) cancel = clock.schedule(everyMs, () => void look());
  };
  void look();
  return () => {
    isOver = true;
    cancel();
  };
}

/** Returns a follower that prints refusals for users who follow decisions. */
export function followerOf({ context, printer, client }: AdminCommandParts): RefusalFollower {
  return {
    clock: systemClock,
    onRefusal: (one) => context.output.out(drawRefusalLine(one, printer.drawing())),
    onFailure: (thrown) => {
      const { message } = adminCallFailure(thrown, client);
      context.output.err(`Note: refusals of services are not shown: ${message}`);
    },
  };
}

const lineWords = {
  breakers: "by circuit breakers, as Envoys report",
  admission: "by admission",
} as const;

/** Draws a report in one line, similar to those of decisions. */
function drawRefusalLine(one: ServiceRefusals, { style, columnsMax }: Drawing): string {
  const time = timestampFromMs(Math.floor(systemClock.epochUs() / 1_000));
  const head = `${clockText(time)}  ${replicaText(one.replica)}  `;
  const words = `${safeText(one.service)}: ${rateOf(one)} ${lineWords[one.by]}`;
  const rest = truncateText(words, columnsMax - head.length - 9);
  return `${style.dim(head)}${style.bad("refused")}  ${rest}`;
}

function rateOf({ perSecond, totalCount }: ServiceRefusals): string {
  return perSecond === undefined ? `${countText(totalCount)} so far` : `${perSecond.toFixed(1)}/s`;
}
