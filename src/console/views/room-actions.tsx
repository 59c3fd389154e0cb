import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type {
  ExplainTicketResponse,
  Room,
  SetRoomOverrideRequestSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatCount, formatTime, millisOf } from "../data/format.js";
import { formatRange } from "../data/rooms.js";
import { showText } from "../data/shown-text.js";
import { ActionDialog, type PlannedChange } from "../parts/action-dialog.jsx";
import { ToneIcon } from "../parts/status.jsx";
import { api, errorText } from "../state/api.js";
import { mayChange } from "../state/session.js";

type Change = MessageInitShape<typeof SetRoomOverrideRequestSchema>;
type ActionName = "mode" | "capacity" | "event" | "reset";

interface RoomActionProps {
  readonly room: Room;
  readonly onClose: () => void;
}

/** What an operator may do with a room; readers see nothing of it. */
export function RoomActions({ room }: { readonly room: Room }) {
  const open = useSignal<ActionName | undefined>(undefined);
  if (!mayChange(room.domain === "" ? undefined : room.domain)) return undefined;
  const button = (name: ActionName, text: string) => (
    <button type="button" onClick={() => (open.value = name)}>
      {text}
    </button>
  );
  const close = (): void => {
    open.value = undefined;
  };
  const own = { room, onClose: close };
  const { override, events } = room;
  return (
    <div class="tools">
      {button("mode", "Mode …")}
      {button("capacity", "Capacity …")}
      {events.length === 0 ? undefined : button("event", "Event …")}
      {override === undefined ? undefined : button("reset", "Reset …")}
      {open.value === "mode" ? <ModeAction {...own} /> : undefined}
      {open.value === "capacity" ? <CapacityAction {...own} /> : undefined}
      {open.value === "event" ? <EventAction {...own} /> : undefined}
      {open.value === "reset" ? <ResetAction {...own} /> : undefined}
    </div>
  );
}

const modes = {
  open: { verb: "Resume", command: "resume", what: "visitors enter" },
  paused: { verb: "Pause", command: "pause", what: "nobody enters; visitors keep their places" },
  draining: {
    verb: "Drain",
    command: "drain",
    what: "nobody joins; those who wait still enter",
  },
} as const;

type Mode = keyof typeof modes;
const modeNames: readonly Mode[] = ["open", "paused", "draining"];

function ModeAction({ room, onClose }: RoomActionProps) {
  const mode = useSignal<Mode>(room.mode === "open" ? "paused" : "open");
  const { verb, command, what } = modes[mode.value];
  return (
    <OverrideAction
      room={room}
      verb={verb}
      isDangerous={mode.value !== "open"}
      changes={
        mode.value === room.mode
          ? undefined
          : [{ what: "Mode", before: room.mode, after: `${mode.value}: ${what}` }]
      }
      words={[command, room.name]}
      change={{ mode: mode.value }}
      onClose={onClose}
    >
      <SelectField
        label="Mode"
        value={mode}
        options={modeNames.map((name) => [name, `${name}: ${modes[name].what}`])}
      />
    </OverrideAction>
  );
}

function SelectField<Name extends string>({
  label,
  value,
  options,
}: {
  readonly label: string;
  readonly value: Signal<Name>;
  readonly options: readonly (readonly [name: Name, text: string])[];
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select
        value={value.value}
        onInput={({ currentTarget }) => {
          value.value = options[currentTarget.selectedIndex]?.[0] ?? value.value;
        }}
      >
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function CapacityAction({ room, onClose }: RoomActionProps) {
  const users = useSignal("");
  const rate = useSignal("");
  const { activeUsers, entriesPerMinute } = room.override ?? {};
  const wantedUsers = readWhole(users.value);
  const wantedRate = readWhole(rate.value);
  const isBad = wantedUsers === "bad" || wantedRate === "bad";
  const isReady = !isBad && (wantedUsers !== undefined || wantedRate !== undefined);
  const changes = isReady
    ? [
        ...planned("Active users", room.line?.activeMax, wantedUsers),
        ...planned("New users per minute", entriesPerMinute, wantedRate),
      ]
    : undefined;
  return (
    <OverrideAction
      room={room}
      verb="Change capacity"
      changes={changes}
      words={[
        "set",
        room.name,
        ...(users.value === "" ? [] : ["--active-users", users.value]),
        ...(rate.value === "" ? [] : ["--new-users-per-minute", rate.value]),
      ]}
      change={{
        ...(typeof wantedUsers === "bigint" ? { activeUsers: wantedUsers } : {}),
        ...(typeof wantedRate === "bigint" ? { entriesPerMinute: wantedRate } : {}),
      }}
      onClose={onClose}
    >
      <div class="fields">
        <NumberField label="Active users (empty: unchanged)" text={users} set={activeUsers} />
        <NumberField label="New users per minute" text={rate} set={entriesPerMinute} />
      </div>
    </OverrideAction>
  );
}

function NumberField({
  label,
  text,
  set,
}: {
  readonly label: string;
  readonly text: Signal<string>;
  /** What an operator has set. */
  readonly set: bigint | undefined;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        inputMode="numeric"
        placeholder={String(set ?? "the policy's")}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value.trim();
        }}
      />
    </label>
  );
}

/** Undefined: nothing is written. Headgate says what is too large. */
function readWhole(text: string): bigint | "bad" | undefined {
  if (text === "") return undefined;
  return /^\d{1,9}$/.test(text) ? BigInt(text) : "bad";
}

function planned(
  what: string,
  before: bigint | undefined,
  after: bigint | "bad" | undefined,
): readonly PlannedChange[] {
  if (typeof after !== "bigint") return [];
  const text = before === undefined ? "the policy's" : formatCount(before);
  return [{ what, before: text, after: formatCount(after) }];
}

function EventAction({ room, onClose }: RoomActionProps) {
  const opened = room.override?.openedEvent ?? "";
  const wanted = useSignal(opened === "" ? (room.events[0]?.name ?? "") : "");
  const { value: name } = wanted;
  const shown = (event: string): string => (event === "" ? "by schedule" : showText(event));
  return (
    <OverrideAction
      room={room}
      verb={name === "" ? "Close event" : "Open event"}
      changes={
        name === opened
          ? undefined
          : [{ what: "Open event", before: shown(opened), after: shown(name) }]
      }
      words={name === "" ? ["close", room.name] : ["open", room.name, name]}
      change={{ openEvent: name }}
      onClose={onClose}
    >
      <SelectField
        label="Event to open now"
        value={wanted}
        options={[
          ["", "none: events open as scheduled"],
          ...room.events.map(({ name: event }) => [event, showText(event)] as const),
        ]}
      />
    </OverrideAction>
  );
}

function ResetAction({ room, onClose }: RoomActionProps) {
  return (
    <OverrideAction
      room={room}
      verb="Reset"
      changes={[{ what: "Changes of operators", before: "apply", after: "removed" }]}
      words={["reset", room.name]}
      change={{ reset: true }}
      onClose={onClose}
    />
  );
}

function OverrideAction({
  room: { name },
  verb,
  isDangerous = false,
  changes,
  words,
  change,
  onClose,
  children,
}: RoomActionProps & {
  readonly verb: string;
  readonly isDangerous?: boolean;
  readonly changes: readonly PlannedChange[] | undefined;
  /** Of the command, after `headgate rooms`. */
  readonly words: readonly string[];
  readonly change: Change;
  readonly children?: ComponentChildren;
}) {
  return (
    <ActionDialog
      title={`Room ${showText(name)}`}
      verb={verb}
      isDangerous={isDangerous}
      changes={changes}
      command={(reason) => writeCommand(["headgate", "rooms", ...words, ...reasonFlags(reason)])}
      run={async (reason) => {
        await api.rooms.setRoomOverride({ ...change, room: name, reason });
        return "Changed. It applies on all replicas within two seconds.";
      }}
      onClose={onClose}
    >
      {children}
    </ActionDialog>
  );
}

/** Explains the ticket of a visitor, and admits that visitor. The ticket stays in this form. */
export function RoomTicket({ room }: { readonly room: Room }) {
  const ticket = useSignal("");
  const answer = useSignal<ExplainTicketResponse | undefined>(undefined);
  const failure = useSignal<string | undefined>(undefined);
  const isOpen = useSignal(false);
  const explain = async (): Promise<void> => {
    failure.value = undefined;
    answer.value = undefined;
    try {
      answer.value = await api.rooms.explainTicket({ room: room.name, ticket: ticket.value });
    } catch (error) {
      failure.value = errorText(error);
    }
  };
  const isEmpty = ticket.value === "";
  return (
    <section class="panel">
      <h2>Ticket</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isEmpty) void explain();
        }}
      >
        <label class="field">
          <span>The value of the room's cookie, as a visitor sends it</span>
          <input
            class="mono"
            type="password"
            autocomplete="off"
            spellcheck={false}
            maxLength={4_096}
            value={ticket.value}
            onInput={({ currentTarget }) => {
              ticket.value = currentTarget.value.trim();
            }}
          />
        </label>
        <div class="tools">
          <button type="submit" disabled={isEmpty}>
            Explain
          </button>
          {mayChange(room.domain === "" ? undefined : room.domain) ? (
            <button type="button" disabled={isEmpty} onClick={() => (isOpen.value = true)}>
              Let in …
            </button>
          ) : undefined}
        </div>
      </form>
      {failure.value === undefined ? undefined : (
        <p class="notice bad" role="alert">
          <ToneIcon tone="bad" /> {failure.value}
        </p>
      )}
      {answer.value === undefined ? undefined : <Answer answer={answer.value} />}
      {isOpen.value ? (
        <LetIn
          room={room}
          ticket={ticket.value}
          onClose={() => {
            isOpen.value = false;
          }}
        />
      ) : undefined}
    </section>
  );
}

const states: Readonly<Record<string, string>> = {
  waiting: "waits",
  entered: "has entered",
  gone: "is gone: it left, missed too many refreshes, or its session is over",
  unknown: "is of a line that is over, or the store does not answer",
};

function Answer({ answer }: { readonly answer: ExplainTicketResponse }) {
  const { number, state, kind, ahead, estimate, time } = answer;
  return (
    <div role="status">
      <dl class="facts">
        <dt>Number</dt>
        <dd>
          {formatCount(number)} {states[state] ?? state}
        </dd>
        <dt>{kind === "session" ? "Last used" : "Joined"}</dt>
        <dd>{formatTime(millisOf(time))}</dd>
        {ahead === undefined ? undefined : (
          <>
            <dt>Ahead</dt>
            <dd>{formatCount(ahead)} visitors</dd>
          </>
        )}
        {estimate === undefined ? undefined : (
          <>
            <dt>Wait</dt>
            <dd>{formatRange(estimate)}</dd>
          </>
        )}
      </dl>
    </div>
  );
}

function LetIn({
  room: { name },
  ticket,
  onClose,
}: {
  readonly room: Room;
  readonly ticket: string;
  readonly onClose: () => void;
}) {
  const words = ["headgate", "rooms", "let-in", name, "--ticket-file", "ticket.txt"];
  return (
    <ActionDialog
      title={`Let a visitor into ${showText(name)}`}
      verb="Let in"
      changes={[{ what: "This visitor", before: "waits", after: "enters with the next request" }]}
      command={(reason) => writeCommand([...words, ...reasonFlags(reason)])}
      run={async (reason) => {
        const { number } = await api.rooms.letIn({ room: name, ticket, reason });
        return `Number ${formatCount(number)} may enter with its next request.`;
      }}
      onClose={onClose}
    />
  );
}
