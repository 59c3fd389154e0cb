import { useSignal } from "@preact/signals";
import type { ExplainTicketResponse, Room } from "../../gen/headgate/admin/v1/admin_pb.js";
import { reasonFlags, writeCommand } from "../data/cli-command.js";
import { formatCount, formatTime, millisOf } from "../data/format.js";
import { formatRange } from "../data/rooms.js";
import { showText } from "../data/shown-text.js";
import { api, errorText } from "../state/api.js";
import { mayChange } from "../state/session.js";
import { ActionDialog } from "./action-dialog.jsx";
import { ToneIcon } from "./status.jsx";

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
