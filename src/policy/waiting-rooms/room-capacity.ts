import { isScalar } from "yaml";
import { any, readBy, whole, words } from "../text/form.js";
import { field, object } from "../text/object.js";

/** A number from the policy, or one that Headgate measures. */
type NumberOrAuto = number | "auto";

/** Maximum number of sessions of one room. */
export const activeUsersMax = 1_000_000;

/** Maximum number of visitors who enter one room in a minute. */
export const entriesPerMinuteMax = 1_000_000;

function numberOrAuto(max: number) {
  const number = whole({ min: 1, max });
  const expected = `auto, or a whole number, 1 to ${max}`;
  return readBy<NumberOrAuto>(any(number, words("auto")), (reader, place) => {
    const content = reader.contentOf(place);
    const isText = isScalar(content) && typeof content.value === "string";
    if (!isText) return number.read(reader, place);
    return reader.readChoice<"auto">(place, ["auto"], {
      id: "HG133",
      what: "a capacity",
      expected,
    });
  });
}

const rows = {
  activeUsers: {
    form: numberOrAuto(activeUsersMax),
    docs: "Visitors with a session at a time, in the whole fleet.",
  },
  newUsersPerMinute: {
    form: numberOrAuto(entriesPerMinuteMax),
    docs: "Visitors who enter in a minute, in the whole fleet.",
  },
} as const;

/** `capacity` of a waiting room. */
export const roomCapacity = object(
  { title: "a capacity", docs: "How many visitors the service takes." },
  {
    activeUsers: field(
      rows.activeUsers.form,
      `${rows.activeUsers.docs} \`auto\`: as many as the service's limit carries, by the ` +
        "requests that sessions have in flight.",
      { larger: "looser", as: "activeUsersMax", default: "auto" },
    ),
    newUsersPerMinute: field(
      rows.newUsersPerMinute.form,
      `${rows.newUsersPerMinute.docs} \`auto\`: as many as there are free sessions.`,
      { larger: "looser", as: "entriesPerMinuteMax", default: "auto" },
    ),
  },
);

/** `capacity` of an event. */
export const eventCapacity = object(
  { title: "a capacity of an event", docs: "How many visitors the service takes meanwhile." },
  {
    activeUsers: field(rows.activeUsers.form, `${rows.activeUsers.docs} Default: the room's.`, {
      larger: "looser",
      as: "activeUsersMax",
    }),
    newUsersPerMinute: field(
      rows.newUsersPerMinute.form,
      `${rows.newUsersPerMinute.docs} Default: the room's.`,
      { larger: "looser", as: "entriesPerMinuteMax" },
    ),
  },
);
