import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  ExplainTicketResponseSchema,
  LetInResponseSchema,
  ListRoomsResponseSchema,
  type SetRoomOverrideRequestSchema,
  SetRoomOverrideResponseSchema,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { activeUsersMax, entriesPerMinuteMax } from "../../policy/waiting-rooms/room-capacity.js";
import {
  type AdminCommandParts,
  addFleetViewFlags,
  addReasonFlags,
  confirm,
  type FleetViewFlags,
  noteSilent,
  type ReasonFlags,
  runAdmin,
} from "../admin/admin-command.js";
import { addAdminCommandFlags } from "../admin/admin-flags.js";
import { isRedrawn, readEvery, roomBeside, watch } from "../admin/live-command.js";
import { readWhole } from "../input/number-flags.js";
import { readSmallFile, readSmallInput } from "../input/small-file.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { safeText } from "../terminal/quantity.js";
import { drawOverride, drawRoom, drawRooms, drawTicket } from "./rooms-report.js";

interface ListFlags extends FleetViewFlags {
  readonly watch?: true;
  readonly every: string;
}

/** Adds `headgate rooms`: waiting rooms, and operators' changes to them. */
export function addRooms(program: Command, context: CommandContext): void {
  const rooms = program
    .command("rooms")
    .description("watch waiting rooms, and change how they admit visitors")
    .addHelpText(
      "before",
      `Examples:
  headgate rooms
  headgate rooms --watch
  headgate rooms show lobby
  headgate rooms pause lobby --reason "payments are down"
  headgate rooms set lobby --active-users 500 --reason "two more backends"
  headgate rooms reset lobby --reason "the sale is over"
  headgate rooms explain lobby --ticket-file ticket.txt
`,
    );
  addList(rooms, context);
  addShow(rooms, context);
  for (const [name, row] of Object.entries(modes)) addMode(rooms, context, { name, ...row });
  addSet(rooms, context);
  addEvents(rooms, context);
  addReset(rooms, context);
  addLetIn(rooms, context);
  addExplain(rooms, context);
}

function addList(rooms: Command, context: CommandContext): void {
  const command = rooms
    .command("list", { isDefault: true })
    .description("list the rooms of the active policy")
    .option("--watch", "refresh until q or Ctrl-C")
    .option("--every <DURATION>", "the refresh interval of --watch", "1s");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate rooms
  headgate rooms list --watch --every 5s
  headgate rooms -o json | jq '.rooms[] | {name, replica, waiting: .line.waiting}'`,
    notes: `
\`wait\` is what a visitor who joined now would be told; 90 % of these ranges
should hold. \`held\` is the measured ratio. \`join\` and \`enter\` are visitors
per second. Changes apply to all replicas until \`headgate rooms reset\`.`,
  }).action((flags: ListFlags) => runAdmin(command, context, (call) => list(flags, call)));
}

async function list(flags: ListFlags, call: AdminCommandParts): Promise<void> {
  const { client, printer } = call;
  const { thisReplica = false } = flags;
  const ask = () => client.rooms.listRooms({ thisReplica });
  if (flags.watch === true && isRedrawn(call, {})) {
    const draw = async () => {
      const drawing = printer.drawing();
      const lines = drawRooms(await ask(), drawing).slice(0, roomBeside(2, call));
      return [...lines, "", drawing.style.dim("q quit")];
    };
    return watch({ everyMs: readEvery(flags.every), draw }, call);
  }
  const answer = await ask();
  printer.print(ListRoomsResponseSchema, answer, drawRooms);
  noteSilent(call, answer.silentReplicas);
}

function addShow(rooms: Command, context: CommandContext): void {
  const command = roomCommand(rooms, "show", "show a room, its line, and what operators changed");
  addAdminCommandFlags(addFleetViewFlags(command), {
    examples: `
  headgate rooms show lobby
  headgate rooms show lobby -o json | jq '.rooms[0].line'`,
  }).action((room: string, { thisReplica = false }: FleetViewFlags) =>
    runAdmin(command, context, async (call) => {
      const answer = await call.client.rooms.listRooms({ room, thisReplica });
      call.printer.print(ListRoomsResponseSchema, answer, drawRoom);
      noteSilent(call, answer.silentReplicas);
    }),
  );
}

const modes = {
  pause: { mode: "paused", what: "admit nobody; visitors keep their places", verb: "Pause" },
  resume: { mode: "open", what: "admit visitors again", verb: "Resume" },
  drain: { mode: "draining", what: "let nobody join; those who wait still enter", verb: "Drain" },
} as const;

interface ModeRow {
  readonly name: string;
  readonly mode: string;
  readonly what: string;
  readonly verb: string;
}

function addMode(
  rooms: Command,
  context: CommandContext,
  { name, mode, what, verb }: ModeRow,
): void {
  const command = roomCommand(rooms, name, what);
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `\n  headgate rooms ${name} lobby --reason "payments are down"`,
  }).action((room: string, flags: ReasonFlags) =>
    runAdmin(command, context, (call) => {
      return change({ room, mode }, { flags, question: `${verb} the room ${room}?` }, call);
    }),
  );
}

interface SetFlags extends ReasonFlags {
  readonly activeUsers?: string;
  readonly newUsersPerMinute?: string;
}

function addSet(rooms: Command, context: CommandContext): void {
  const command = roomCommand(rooms, "set", "change the capacity or the rate of entrances")
    .option("--active-users <COUNT>", `the maximum number of sessions, 0 to ${activeUsersMax}`)
    .option(
      "--new-users-per-minute <COUNT>",
      `the maximum number of entrances per minute, 0 to ${entriesPerMinuteMax}`,
    );
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `
  headgate rooms set lobby --active-users 500 --reason "two more backends"
  headgate rooms set lobby --new-users-per-minute 60 --reason "a slow database"`,
  }).action((room: string, flags: SetFlags) =>
    runAdmin(command, context, (call) => {
      const { activeUsers, newUsersPerMinute } = flags;
      if (activeUsers === undefined && newUsersPerMinute === undefined) {
        throw usageFailure("set --active-users, --new-users-per-minute or both");
      }
      const users = readWide("--active-users", activeUsers, activeUsersMax);
      const rate = readWide("--new-users-per-minute", newUsersPerMinute, entriesPerMinuteMax);
      const wanted = {
        room,
        ...(users === undefined ? {} : { activeUsers: users }),
        ...(rate === undefined ? {} : { entriesPerMinute: rate }),
      };
      const asked = [
        ...(activeUsers === undefined ? [] : [`${activeUsers} active users`]),
        ...(newUsersPerMinute === undefined ? [] : [`${newUsersPerMinute} new users per minute`]),
      ];
      const question = `Set ${asked.join(" and ")} for the room ${room}?`;
      return change(wanted, { flags, question }, call);
    }),
  );
}

function readWide(flag: string, text: string | undefined, max: number): bigint | undefined {
  return text === undefined ? undefined : BigInt(readWhole(flag, text, max));
}

function addEvents(rooms: Command, context: CommandContext): void {
  const open = roomCommand(rooms, "open", "open an event now").argument(
    "<EVENT>",
    "the name of the event, from the policy",
  );
  addAdminCommandFlags(addReasonFlags(open), {
    examples: `\n  headgate rooms open lobby friday --reason "ready before time"`,
  }).action((room: string, openEvent: string, flags: ReasonFlags) =>
    runAdmin(open, context, (call) => {
      const question = `Open the event ${openEvent} of the room ${room}?`;
      return change({ room, openEvent }, { flags, question }, call);
    }),
  );
  const close = roomCommand(rooms, "close", "close the event that was opened by hand");
  addAdminCommandFlags(addReasonFlags(close), {
    examples: `\n  headgate rooms close lobby --reason "sold out"`,
  }).action((room: string, flags: ReasonFlags) =>
    runAdmin(close, context, (call) => {
      const question = `Close the event that was opened by hand in the room ${room}?`;
      return change({ room, openEvent: "" }, { flags, question }, call);
    }),
  );
}

function addReset(rooms: Command, context: CommandContext): void {
  const command = roomCommand(rooms, "reset", "undo all changes: the policy applies again");
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `\n  headgate rooms reset lobby --reason "the sale is over"`,
  }).action((room: string, flags: ReasonFlags) =>
    runAdmin(command, context, (call) => {
      const question = `Undo all changes to the room ${room}?`;
      return change({ room, reset: true }, { flags, question }, call);
    }),
  );
}

async function change(
  wanted: MessageInitShape<typeof SetRoomOverrideRequestSchema>,
  { flags, question }: { readonly flags: ReasonFlags; readonly question: string },
  { client, context, printer }: AdminCommandParts,
): Promise<void> {
  await confirm(context, flags.yes, safeText(question));
  const answer = await client.rooms.setRoomOverride({ ...wanted, reason: flags.reason });
  printer.print(SetRoomOverrideResponseSchema, answer, ({ override }) => [
    `${safeText(wanted.room ?? "")}: ${drawOverride(override)}`,
  ]);
}

interface TicketFlags {
  readonly ticketFile?: string;
}

const ticketNotes = `
The ticket is the value of the room's cookie. It is read from a file or from
standard input, so that it is not in the history of your shell.`;

function addLetIn(rooms: Command, context: CommandContext): void {
  const command = addTicketFlag(
    roomCommand(rooms, "let-in", "admit the visitor of a ticket ahead of the line"),
  );
  addAdminCommandFlags(addReasonFlags(command), {
    examples: `
  headgate rooms let-in lobby --ticket-file ticket.txt --reason "case 42"
  cat ticket.txt | headgate rooms let-in lobby --reason "case 42"`,
    notes: ticketNotes,
  }).action((room: string, flags: TicketFlags & ReasonFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const ticket = await readTicket(flags, context);
      await confirm(context, flags.yes, safeText(`Admit this visitor to the room ${room}?`));
      const answer = await client.rooms.letIn({ room, ticket, reason: flags.reason });
      printer.print(LetInResponseSchema, answer, ({ number }) => [
        `Number ${number} may enter with its next request.`,
      ]);
    }),
  );
}

function addExplain(rooms: Command, context: CommandContext): void {
  const command = addTicketFlag(
    roomCommand(rooms, "explain", "what a ticket contains, and where its visitor is in the line"),
  );
  addAdminCommandFlags(command, {
    examples: `
  headgate rooms explain lobby --ticket-file ticket.txt
  cat ticket.txt | headgate rooms explain lobby`,
    notes: ticketNotes,
  }).action((room: string, flags: TicketFlags) =>
    runAdmin(command, context, async ({ client, printer }) => {
      const ticket = await readTicket(flags, context);
      const answer = await client.rooms.explainTicket({ room, ticket });
      printer.print(ExplainTicketResponseSchema, answer, drawTicket);
    }),
  );
}

function roomCommand(rooms: Command, name: string, description: string): Command {
  return rooms.command(name).description(description).argument("<NAME>", "the name of the room");
}

function addTicketFlag(command: Command): Command {
  return command.option("--ticket-file <FILE>", "a file with the ticket; default: standard input");
}

async function readTicket(
  { ticketFile }: TicketFlags,
  { terminal }: CommandContext,
): Promise<string> {
  if (ticketFile === undefined && terminal.canAsk) {
    throw usageFailure("pass the ticket on standard input, or as --ticket-file");
  }
  const text = ticketFile === undefined ? await readSmallInput() : readSmallFile(ticketFile);
  const ticket = text.trim();
  if (ticket === "") throw usageFailure("the ticket is empty");
  return ticket;
}
