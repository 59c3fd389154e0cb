import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "../../core/base/clock.js";
import type { Service } from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import { adminCallFailure } from "../admin/admin-call-failure.js";
import type { AdminCommandParts } from "../admin/admin-command.js";
import type { Drawing } from "../terminal/drawing.js";
import { clockText, countText, replicaText, safeText } from "../terminal/quantity.js";
import { truncateText } from "../terminal/text-width.js";

/** What is refused of one service, before its limits are asked or instead of them. */
interface ServiceRefusals {
  readonly service: string;
  /** Circuit breakers of Envoys, by the newest that was reported; or admission of replicas. */
  readonly by: "breakers" | "admission";
  /** Undefined at a first look at admission, which has counts alone. */
  readonly perSecond: number | undefined;
  /** By admission since its replicas have begun. */
  readonly totalCount: number;
  /** One that said so. */
  readonly replica: string;
}

/** Services that are told of; a fleet in which more are full has one trouble, not many. */
const reportedServicesMax = 5;

/** How often a stream of decisions asks for them, in milliseconds: Envoys report as often. */
const everyMs = 1_000;

type Refusing = Pick<Service, "name" | "replica" | "refused" | "overflowPerSecond">;

/**
 * What is refused of services, most first, from one look at them to the next. Envoys report sums
 * of their breakers, which every replica knows; each replica counts what its own admission refuses.
 */
export class RefusalLooks {
  /** By replica and service, as of the last look. */
  #counted: ReadonlyMap<string, CountedRefusals> = new Map();

  /** What one look says, next to the one before. */
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

/** A replica that began anew counts from 0 again. */
function growthPerSecond(before: CountedRefusals, { refused, atMs }: CountedRefusals): number {
  const grown = refused >= before.refused ? refused - before.refused : refused;
  return (Number(grown) * 1_000) / Math.max(1, atMs - before.atMs);
}

/** A look each time that it is called. */
type LookAtRefusals = () => Promise<readonly ServiceRefusals[]>;

/** Looks at the services of the fleet, or of one replica. */
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
 * Rows below a table of keys; none where nothing is refused. Where they cannot be asked for, a row
 * says so: the keys are worth a look without them.
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

/** Rows for both, each with a title, most refused first. */
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

/** Where lines about refusals go. */
interface RefusalFollower {
  readonly clock: Pick<Clock, "schedule">;
  readonly onRefusal: (one: ServiceRefusals) => void;
  /** Once for each time in which they cannot be asked for. */
  readonly onFailure: (thrown: unknown) => void;
}

/**
 * Tells of each service each second in which requests of it are refused so, until the answer is
 * called. Where they cannot be asked for, the next second asks again.
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

/** The same for people who follow decisions. */
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

/** A report, in one line like those of decisions. */
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
