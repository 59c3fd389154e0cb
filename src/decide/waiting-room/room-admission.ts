import type { BufferedBody } from "../../core/admission/exchange.js";
import type { HeaderField } from "../../core/base/header-field.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { Policy } from "../../policy/policy.js";
import { addRoomNeeds } from "../../policy/request-needs.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type {
  AdmissionAnswer,
  AdmissionCall,
  AdmissionDecider,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
  ResponseFacts,
} from "../admission/admission-call.js";
import { type DoorAnswer, RoomDoor, type RoomDoorParts } from "./room-door.js";

/** The parts of a policy that rooms use. */
type RoomsPolicy = Pick<Policy, "serviceIndex" | "waitingRooms">;

interface RoomAdmissionParts extends RoomDoorParts {
  readonly policies: { current(): RoomsPolicy | undefined };
  /** Admission behind the rooms. */
  readonly inner: AdmissionDecider;
}

/** Rooms of a policy, ready for requests. */
interface Doors {
  readonly byService: ReadonlyMap<string, readonly RoomDoor[]>;
  readonly byName: ReadonlyMap<string, RoomDoor>;
  readonly requestHeaderNames: ReadonlySet<string>;
  readonly attributeNames: ReadonlySet<string>;
}

/**
 * Waiting rooms in front of admission. A request passes the first room of its service that guards
 * it, and then asks for admission. Without a room in the policy, this costs one comparison.
 */
export class RoomAdmission implements AdmissionDecider {
  readonly #parts: RoomAdmissionParts;
  #policy: RoomsPolicy | undefined;
  /** Undefined if the policy has no rooms. */
  #doors: Doors | undefined;

  constructor(parts: RoomAdmissionParts) {
    this.#parts = parts;
  }

  get requestHeaderNames(): ReadonlySet<string> {
    this.#follow();
    return this.#doors?.requestHeaderNames ?? this.#parts.inner.requestHeaderNames;
  }

  get responseHeaderNames(): ReadonlySet<string> {
    return this.#parts.inner.responseHeaderNames;
  }

  get attributeNames(): ReadonlySet<string> {
    this.#follow();
    return this.#doors?.attributeNames ?? this.#parts.inner.attributeNames;
  }

  get metadataPaths(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#parts.inner.metadataPaths;
  }

  readsBody(request: AdmissionRequest): boolean {
    return this.#parts.inner.readsBody(request);
  }

  readBody(request: AdmissionRequest, body: BufferedBody): CallFacts {
    return this.#parts.inner.readBody(request, body);
  }

  /** The doors of the active policy, by the names of their rooms. */
  get doors(): ReadonlyMap<string, RoomDoor> {
    this.#follow();
    return this.#doors?.byName ?? noDoors;
  }

  begin(request: AdmissionRequest, call: AdmissionCall): AdmissionAnswer {
    this.#follow();
    const { inner } = this.#parts;
    const indexed = this.#doors === undefined ? undefined : this.#serviceOf(request);
    if (indexed === undefined) return inner.begin(request, call);
    for (const door of this.#doors?.byService.get(indexed.service.name) ?? []) {
      const visit = door.look(request, indexed.classifier);
      if (visit === "unguarded") continue;
      if (visit === "passes") break;
      const guarded = new GuardedRequest(inner, request);
      door.decide(visit, (answer) => guarded.answered(answer));
      return guarded.begun(call);
    }
    return inner.begin(request, call);
  }

  #serviceOf({ serviceName, headers }: AdmissionRequest) {
    const index = this.#policy?.serviceIndex;
    if (serviceName !== undefined) return index?.named(serviceName);
    const authority = headers.get(":authority");
    return authority === undefined ? undefined : index?.at(authority);
  }

  /** Applies a new policy at the first use after the change. */
  #follow(): void {
    const policy = this.#parts.policies.current();
    if (policy === this.#policy) return;
    const before = this.#doors?.byName ?? noDoors;
    this.#policy = policy;
    const rooms = policy?.waitingRooms ?? [];
    this.#doors = rooms.length === 0 ? undefined : this.#open(rooms, before);
  }

  #open(rooms: readonly RoomPolicy[], before: ReadonlyMap<string, RoomDoor>): Doors {
    const { inner } = this.#parts;
    const byName = new Map<string, RoomDoor>();
    const headers = new Set(inner.requestHeaderNames);
    const attributes = new Set(inner.attributeNames);
    for (const room of rooms) {
      byName.set(room.name, new RoomDoor(this.#parts, room, before.get(room.name)));
      addRoomNeeds(room, { headers, attributes });
    }
    const services = new Set(rooms.map(({ service }) => service));
    const doors = [...byName.values()];
    const byService = new Map(
      [...services].map((name) => [name, doors.filter(({ policy }) => policy.service === name)]),
    );
    return { byService, byName, requestHeaderNames: headers, attributeNames: attributes };
  }
}

const noDoors: ReadonlyMap<string, RoomDoor> = new Map();

/**
 * A response with a session must not be shared, whatever the upstream says: of several directives,
 * the strictest one applies. Source: RFC 9111, sections 4.2.1 and 5.2.2.7.
 */
const uncached: HeaderField = { name: "cache-control", value: "private", isAppended: true };

/**
 * A request that its room must decide first. Its caller receives verdicts as from admission, and
 * never after its exchange has ended.
 */
class GuardedRequest implements AdmissionCall, AdmissionTicket {
  readonly #inner: AdmissionDecider;
  readonly #request: AdmissionRequest;
  /** Receives verdicts. Undefined while `begin` runs, which returns the verdict itself. */
  #call: AdmissionCall | undefined;
  #verdict: AdmissionVerdict | undefined;
  /** The ticket of admission, once admission was asked. */
  #ticket: AdmissionTicket | undefined;
  #cookie: HeaderField | undefined;
  #isOver = false;

  constructor(inner: AdmissionDecider, request: AdmissionRequest) {
    this.#inner = inner;
    this.#request = request;
  }

  /** Returns the result of `begin`. From then on, `call` receives verdicts. */
  begun(call: AdmissionCall): AdmissionAnswer {
    this.#call = call;
    return this.#verdict ?? { kind: "asking", ticket: this };
  }

  /** Handles the answer of the room. */
  answered(answer: DoorAnswer): void {
    if (this.#isOver) return;
    if (answer.kind === "kept") {
      this.#tell({ kind: "refused", refusal: answer.refusal });
      return;
    }
    this.#cookie = answer.cookie;
    const admission = this.#inner.begin(this.#request, this);
    if (admission.kind !== "refused") this.#ticket = admission.ticket;
    if (admission.kind !== "asking") this.decided(admission);
  }

  /** Handles the verdict of admission. */
  decided(verdict: AdmissionVerdict): void {
    if (this.#isOver) return;
    if (verdict.kind === "waiting") {
      this.#tell({ ...verdict, ticket: this });
    } else if (verdict.kind === "admitted") {
      const { terms } = verdict;
      const responseSetHeaders = this.#cookie === undefined ? [] : [this.#cookie, uncached];
      this.#tell({ ...verdict, terms: { ...terms, responseSetHeaders }, ticket: this });
    } else {
      // The visitor keeps the session, even if the service has no room for this request.
      const { refusal } = verdict;
      const headers = this.#cookie ? [...refusal.headers, this.#cookie] : refusal.headers;
      this.#tell({ kind: "refused", refusal: { ...refusal, headers } });
    }
  }

  responded(facts: ResponseFacts): void {
    this.#ticket?.responded(facts);
  }

  end(end: Parameters<AdmissionTicket["end"]>[0]): void {
    this.#isOver = true;
    this.#ticket?.end(end);
  }

  #tell(verdict: AdmissionVerdict): void {
    if (this.#call === undefined) this.#verdict = verdict;
    else this.#call.decided(verdict);
  }
}
