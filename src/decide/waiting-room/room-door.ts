import type { Refusal } from "../../core/admission/exchange-messages.js";
import { fadingInput, Gate } from "../../core/admission/gate.js";
import type { HeaderField } from "../../core/base/header-field.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { GenerationalMap } from "../../core/collections/generational-map.js";
import { rangeHeld } from "../../core/waiting-room/estimate.js";
import type { PageState } from "../../core/waiting-room/page-fields.js";
import { placeOf } from "../../core/waiting-room/places.js";
import type { JoinedLine, RoomLine } from "../../core/waiting-room/room-line.js";
import type {
  SessionTicket,
  Ticket,
  TicketKey,
  WaitingTicket,
} from "../../core/waiting-room/ticket.js";
import { pathHeader } from "../../policy/cel/request-facts.js";
import type { PriorityClassifier } from "../../policy/services/priority-classifier.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { AdmissionRequest } from "../admission/admission-call.js";
import type { RateLimitDecider } from "../admission/admission-rate-limit.js";
import { type ReadGateSettings, setGate } from "../admission/fleet-gate.js";
import { joinLimitOf } from "./join-limit.js";
import { noCookie, sessionCookie, waitingCookie } from "./room-cookies.js";
import { RoomCounts } from "./room-counts.js";
import { RoomMatcher } from "./room-match.js";
import { type RoomRequestKind, requestKindOf } from "./room-request.js";
import { languageHeader, RoomResponses, type RoomResponsesParts } from "./room-responses.js";
import { type RoomStanding, standingOf, standingWithout } from "./room-standing.js";
import { RoomTickets, type TicketsRead } from "./room-tickets.js";
import type { RoomOutcome } from "./room-view.js";

/** A room's line and its keys, as this replica knows them. */
export interface RoomAccess {
  readonly line: RoomLine;
  /** The first one signs. Empty until a key is known; until then, no ticket is valid or issued. */
  keys(): readonly TicketKey[];
}

/** Dependencies of a `RoomDoor`. */
export interface RoomDoorParts extends RoomResponsesParts {
  readonly decider: RateLimitDecider;
  /** Called once for each room of a policy. */
  readonly access: (room: string) => RoomAccess;
  /** Reads operators' changes to gates of rooms. Absent: there are none. */
  readonly gateSettings?: ReadGateSettings;
}

/** The decision on a request at the door of its room. */
export type DoorAnswer =
  /** Continues to admission. The cookie is set on its response. */
  | { readonly kind: "passes"; readonly cookie: HeaderField | undefined }
  /** Answered by the room. */
  | { readonly kind: "kept"; readonly refusal: Refusal };

/** A request that `RoomDoor.look` does not decide. */
export interface DoorVisit {
  readonly request: AdmissionRequest;
  readonly kind: RoomRequestKind;
  readonly tickets: TicketsRead;
  /** The room's endpoint that it is for. Undefined: it is for the service. */
  readonly endpoint: string | undefined;
}

/** The result of looking for a place or a session. */
type DoorResult =
  | { readonly kind: "in"; readonly outcome: RoomOutcome; readonly cookie: HeaderField | undefined }
  | {
      readonly kind: "out";
      readonly outcome: RoomOutcome;
      readonly standing: RoomStanding;
      readonly cookie: HeaderField | undefined;
    };

type Answered = (answer: DoorAnswer) => void;
type Resulted = (result: DoorResult) => void;

/** Maximum number of cached visits, and of renewals, per room: the store is asked once for each. */
const rememberedMax = 65_536;

/** A session is renewed when this fraction of its length has passed. */
const renewAfterRatio = 0.25;

/** A place is looked up at most once in this fraction of the time between refreshes. */
const visitAgainRatio = 0.25;

/**
 * The door of one room. Decides which visitors pass, enter, wait or are turned away. Its knowledge
 * of visitors is in their cookies and in the store; what it keeps itself only saves store calls.
 */
export class RoomDoor {
  readonly policy: RoomPolicy;
  readonly counts: RoomCounts;
  readonly matcher: RoomMatcher;
  readonly tickets: RoomTickets;
  /** Its line, as this replica knows it. */
  readonly line: RoomLine;
  readonly #parts: RoomDoorParts;
  readonly #answers: RoomResponses;
  readonly #joinLimit: ReturnType<typeof joinLimitOf>;
  /** The gate by which Envoys turn visitors away themselves. Undefined: they turn none away. */
  readonly #gate: Gate | undefined;
  /** The line that the numbers below belong to. */
  #lineId: number | undefined;
  /** When a number was seen waiting. */
  #seen = new GenerationalMap<number, number>(rememberedMax);
  /** When the session of a number was renewed. */
  #renewed = new GenerationalMap<number, number>(rememberedMax);

  /** @param before the room's door under the previous policy, whose counts continue */
  constructor(parts: RoomDoorParts, policy: RoomPolicy, before: RoomDoor | undefined) {
    this.policy = policy;
    this.#parts = parts;
    this.counts = before?.counts ?? new RoomCounts();
    this.matcher = new RoomMatcher(policy);
    const { line, keys } = parts.access(policy.name);
    this.line = line;
    this.tickets = new RoomTickets(policy, keys);
    this.#answers = new RoomResponses(parts, policy);
    this.#joinLimit = joinLimitOf(policy, parts.decider);
    const gate = before === undefined ? undefined : before.#gate;
    this.#gate = policy.gate && (gate ?? new Gate(policy.gate));
  }

  /** Fraction of visitors without a ticket that Envoys turn away themselves. */
  get gateRejectRatio(): number {
    return this.#gate === undefined ? 0 : 1 - this.#gate.passRatio;
  }

  /**
   * Updates its gate, once per second: by the wait that the leader reports, and towards open if
   * none is known. See `fadingInput`: visitors who are turned away do not join.
   */
  tick(): void {
    const gate = this.#gate;
    const { gate: own, name } = this.policy;
    if (gate === undefined || own === undefined) return;
    setGate(gate, this.#parts.gateSettings?.(name, own) ?? own);
    const ratio = this.line.isReachable ? (this.line.status?.rejectRatio ?? 0) : 0;
    gate.update(fadingInput(gate, ratio));
  }

  /**
   * Checks a request without the store. Most requests continue at once. Observed ones always do;
   * those that bypass the room or have a session are counted.
   *
   * @returns "unguarded": the room does not guard it; "passes": it continues to admission
   */
  look(
    request: AdmissionRequest,
    classifier: PriorityClassifier,
  ): "unguarded" | "passes" | DoorVisit {
    const endpoint = this.matcher.endpointOf(request);
    if (endpoint === undefined && !this.matcher.matches(request)) return "unguarded";
    if (endpoint === undefined && this.#bypasses(request, classifier)) {
      this.counts.count("bypassed");
      return "passes";
    }
    const tickets = this.tickets.ofRequest(request);
    if (tickets.isForged) this.counts.count("forged");
    const kind = requestKindOf(request.headers);
    if (endpoint === undefined && this.#isInSession(tickets.session)) {
      this.counts.count("session");
      return "passes";
    }
    const mustWait = this.policy.visitors === "all" || kind.isNavigation;
    const isPassed = request.isObserved || kind.isPreflight;
    if (isPassed || (endpoint === undefined && !mustWait)) return "passes";
    return { request, kind, tickets, endpoint };
  }

  /** Decides a visit. @param answered called exactly once, possibly before this returns */
  decide(visit: DoorVisit, answered: Answered): void {
    this.#followLine();
    const { endpoint, kind } = visit;
    if (endpoint === undefined) {
      const { isPrefetch } = kind;
      const result = (one: DoorResult): void => answered(this.#answerOf(visit, one));
      if (isPrefetch && visit.tickets.session === undefined) result(this.#waits());
      else this.#findPlace(visit, result);
      return;
    }
    this.#decideEndpoint(visit, endpoint, answered);
  }

  /** Whether a request need not wait, by its header, address or class. */
  #bypasses(request: AdmissionRequest, classifier: PriorityClassifier): boolean {
    if (this.policy.order === "passthrough" || this.matcher.bypasses(request)) return true;
    const priority = classifier.classify(request);
    return priority === "bypass" || this.policy.bypass.priorities.includes(priority);
  }

  /** Whether a session is valid and need not be renewed yet. */
  #isInSession(session: SessionTicket | undefined): boolean {
    if (session === undefined) return false;
    const age = this.#ageRatioOf(session);
    return age !== undefined && (this.policy.renews ? age < renewAfterRatio : age < 1);
  }

  /** Elapsed fraction of a session, 0 to 1. Undefined: it is over, or this is not known. */
  #ageRatioOf({ lineId, second }: SessionTicket): number | undefined {
    const { line } = this;
    const { status } = line;
    const nowSecond = line.second();
    const isClosed = this.policy.onStoreFailure === "close" && !line.isReachable;
    if (status === undefined || nowSecond === undefined || isClosed) return undefined;
    if (status.lineId !== lineId) return undefined;
    const ratio = (nowSecond - second) / (this.policy.sessionMs / 1_000);
    return ratio < 1 ? Math.max(0, ratio) : undefined;
  }

  /** Clears the caches of a line that is over. */
  #followLine(): void {
    const lineId = this.line.status?.lineId;
    if (lineId === this.#lineId) return;
    this.#lineId = lineId;
    this.#seen = new GenerationalMap(rememberedMax);
    this.#renewed = new GenerationalMap(rememberedMax);
  }

  #findPlace(visit: DoorVisit, resulted: Resulted): void {
    const { session, waiting } = visit.tickets;
    const { line } = this;
    const { status } = line;
    if (status === undefined || !line.isReachable || !this.tickets.canSign) {
      resulted(this.#withoutStore(visit));
    } else if (session !== undefined && this.#ageRatioOf(session) !== undefined) {
      this.#renew(visit, session, resulted);
    } else if (waiting?.lineId === status.lineId) {
      this.#visit(visit, waiting, resulted);
    } else {
      this.#join(visit, resulted);
    }
  }

  /** Handles a valid session, and renews it if necessary. */
  #renew(visit: DoorVisit, session: SessionTicket, resulted: Resulted): void {
    const nowSecond = this.line.second() ?? session.second;
    const isInSession = this.#isInSession(session);
    const known = this.#renewed.get(session.number) ?? 0;
    if (isInSession || known > session.second) {
      const renewed = { ...session, second: known };
      const cookie = isInSession ? undefined : this.#sessionCookie(visit, renewed);
      resulted({ kind: "in", outcome: "session", cookie });
      return;
    }
    this.line.renew(session, (exists) => {
      if (exists === "failed") resulted(this.#withoutStore(visit));
      else if (!exists) this.#join(visit, resulted);
      else {
        this.#renewed.set(session.number, nowSecond);
        const cookie = this.#sessionCookie(visit, { ...session, second: nowSecond });
        resulted({ kind: "in", outcome: "session", cookie });
      }
    });
  }

  #visit(visit: DoorVisit, waiting: WaitingTicket, resulted: Resulted): void {
    const { number } = waiting;
    if (this.#isSeenWaiting(number)) {
      resulted(this.#waits(waiting));
      return;
    }
    this.line.visit(number, (answer) => {
      if (answer.kind === "failed") {
        resulted(this.#withoutStore(visit));
        return;
      }
      const { entry, second } = answer;
      if (entry.kind === "waiting") {
        this.#seen.set(number, second);
        resulted(this.#waits(waiting));
      } else if (entry.kind === "gone") {
        this.#join(visit, resulted);
      } else {
        this.#noteWait(waiting, second);
        const session: SessionTicket = {
          kind: "session",
          lineId: waiting.lineId,
          number,
          session: entry.session,
          second: entry.usedSecond,
        };
        const cookie = this.#sessionCookie(visit, session);
        resulted({ kind: "in", outcome: "entered", cookie });
      }
    });
  }

  /** Whether a place was looked up a moment ago, and has not been called since. */
  #isSeenWaiting(number: number): boolean {
    const { status } = this.line;
    const seen = this.#seen.get(number);
    const second = this.line.second();
    if (status === undefined || seen === undefined || second === undefined) return false;
    const isRecent = second - seen < (visitAgainRatio * this.policy.refreshMs) / 1_000;
    return isRecent && placeOf(number, status.shuffles) >= status.calledPlace;
  }

  #noteWait(waiting: WaitingTicket, second: number): void {
    const trueSeconds = this.counts.entered(waiting, second);
    const { announced } = waiting;
    const factor = this.line.status?.rangeFactor;
    if (trueSeconds === undefined || announced === undefined || factor === undefined) return;
    this.line.noteWait(rangeHeld(announced, trueSeconds, factor));
  }

  /** Handles a visitor without a place. Those who come too often are turned away first. */
  #join(visit: DoorVisit, resulted: Resulted): void {
    const { status } = this.line;
    if (status === undefined) {
      resulted(this.#withoutStore(visit));
    } else if (status.mode === "draining" || this.#parts.draw() < status.rejectRatio) {
      resulted(turnedAway("full"));
    } else if (this.#joinLimit === undefined) {
      this.#joinLine(visit, resulted);
    } else {
      this.#joinLimit.ask(visit.request, Number.POSITIVE_INFINITY, ({ kind }) => {
        if (kind === "denied") resulted(turnedAway("joinLimited"));
        else this.#joinLine(visit, resulted);
      });
    }
  }

  #joinLine(visit: DoorVisit, resulted: Resulted): void {
    this.line.join((answer) => {
      if (answer.kind === "full") resulted(turnedAway("full"));
      else if (answer.kind === "failed") resulted(this.#withoutStore(visit));
      else if (answer.session === undefined) resulted(this.#joined(visit, answer));
      else {
        const { lineId, number, second, session } = answer;
        const ticket: SessionTicket = { kind: "session", lineId, number, session, second };
        const cookie = this.#sessionCookie(visit, ticket);
        resulted({ kind: "in", outcome: "entered", cookie });
      }
    });
  }

  #joined(visit: DoorVisit, { lineId, number, second }: JoinedLine): DoorResult {
    const { status } = this.line;
    const place = { number, second };
    const standing = this.#standingAt(place);
    const { estimate } = standing;
    const rangeFactor = status?.rangeFactor ?? 1;
    const announced = estimate && { ...estimate, rangeFactor };
    const ticket: WaitingTicket = { kind: "waiting", lineId, number, second, announced };
    const text = this.#sign(visit, ticket);
    const cookie = text === undefined ? undefined : waitingCookie(this.policy.cookie, text);
    return { kind: "out", outcome: "joined", standing, cookie };
  }

  /** @param waiting undefined: no place, and no person waits for one (a prefetch) */
  #waits(waiting?: WaitingTicket): DoorResult {
    const standing = waiting === undefined ? standingWithout("waiting") : this.#standingAt(waiting);
    return { kind: "out", outcome: "waiting", standing, cookie: undefined };
  }

  #standingAt(place: Pick<WaitingTicket, "number" | "second">): RoomStanding {
    const { status } = this.line;
    if (status === undefined) return standingWithout("unavailable");
    const second = Math.max(place.second, this.line.second() ?? status.second);
    return standingOf(place, { status, second }, this.policy);
  }

  /** Returns what the policy defines for a time in which the store does not answer. */
  #withoutStore({ tickets: { session, waiting } }: DoorVisit): DoorResult {
    const { onStoreFailure } = this.policy;
    const outcome = "storeFailure";
    const isKept = onStoreFailure === "keep" && session !== undefined && this.#mayLast(session);
    if (onStoreFailure === "open" || isKept) return { kind: "in", outcome, cookie: undefined };
    const { status } = this.line;
    const hasPlace = waiting !== undefined && waiting.lineId === status?.lineId;
    const standing = hasPlace ? this.#standingAt(waiting) : standingWithout("unavailable");
    return { kind: "out", outcome, standing, cookie: undefined };
  }

  /** Whether a session is not known to be over. Until the store has answered, none is. */
  #mayLast(session: SessionTicket): boolean {
    return this.line.status === undefined || this.#ageRatioOf(session) !== undefined;
  }

  #sessionCookie(visit: DoorVisit, session: SessionTicket): HeaderField | undefined {
    const text = this.#sign(visit, session);
    if (text === undefined) return undefined;
    return sessionCookie(this.policy.cookie, text, this.policy.sessionMs);
  }

  #sign({ request }: DoorVisit, ticket: Ticket): string | undefined {
    const whole = { ...ticket, second: Math.floor(ticket.second) };
    return this.tickets.write(whole, this.tickets.scopeOf(request));
  }

  #answerOf(visit: DoorVisit, result: DoorResult): DoorAnswer {
    const { cookie, outcome } = result;
    this.counts.count(outcome);
    if (result.kind === "in") return { kind: "passes", cookie };
    return {
      kind: "kept",
      refusal: this.#answers.kept({ ...this.#to(visit, result.standing), cookie }),
    };
  }

  #to({ request, kind }: DoorVisit, standing: RoomStanding) {
    return { standing, kind, language: request.headers.get(languageHeader) };
  }

  /**
   * Answers applications: `position` (GET) returns a visitor's standing, `join` (POST) gives a
   * place to a visitor without one, `leave` (POST) takes it back. Refuses cross-site POST requests.
   */
  #decideEndpoint(visit: DoorVisit, endpoint: string, answered: Answered): void {
    const { request, kind } = visit;
    const isPosted = request.headers.get(":method") === "POST";
    const kept = (refusal: Refusal): void => answered({ kind: "kept", refusal });
    if (!endpoints.has(endpoint)) {
      kept(this.#answers.noEndpoint(httpStatuses.notFound));
    } else if (endpoint === "position" ? !kind.isSafe : !isPosted) {
      kept(this.#answers.noEndpoint(httpStatuses.methodNotAllowed));
    } else if (isPosted && request.headers.get(siteHeader) === "cross-site") {
      kept(this.#answers.noEndpoint(httpStatuses.forbidden));
    } else if (endpoint === "leave") {
      this.#leave(visit, kept);
    } else {
      const isForPage = request.headers.get(pathHeader)?.endsWith("?page") === true;
      const resulted = (result: DoorResult): void => {
        if (endpoint === "join") this.counts.count(result.outcome);
        const standing = result.kind === "in" ? standingWithout("entered") : result.standing;
        const answer = { ...this.#to(visit, standing), cookie: result.cookie };
        kept(this.#answers.endpoint(answer, isForPage));
      };
      if (endpoint === "join" || this.#hasPlace(visit)) this.#findPlace(visit, resulted);
      else resulted(turnedAway("full", "left"));
    }
  }

  /** Whether a visitor has a session or a place, or had one when the store answered last. */
  #hasPlace({ tickets: { session, waiting } }: DoorVisit): boolean {
    const { line } = this;
    if (line.status === undefined) return session !== undefined || waiting !== undefined;
    if (session !== undefined && this.#ageRatioOf(session) !== undefined) return true;
    return waiting?.lineId === line.status.lineId;
  }

  #leave(visit: DoorVisit, kept: (refusal: Refusal) => void): void {
    const { session, waiting } = visit.tickets;
    const lineId = this.line.status?.lineId;
    if (waiting?.lineId === lineId && waiting !== undefined) {
      this.#seen.set(waiting.number, Number.NEGATIVE_INFINITY);
      this.line.leave({ number: waiting.number });
    }
    if (session?.lineId === lineId && session !== undefined) this.line.leave(session);
    const answer = {
      ...this.#to(visit, standingWithout("left")),
      cookie: noCookie(this.policy.cookie),
    };
    const isForm = visit.kind.wants === "page";
    kept(isForm ? this.#answers.final(answer) : this.#answers.endpoint(answer, false));
  }
}

const endpoints: ReadonlySet<string> = new Set(["join", "position", "leave"]);

/** The site from which a browser sends a request. Source: W3C Fetch Metadata. */
const siteHeader = "sec-fetch-site";

function turnedAway(outcome: RoomOutcome, state: PageState = "full"): DoorResult {
  return { kind: "out", outcome, standing: standingWithout(state), cookie: undefined };
}
